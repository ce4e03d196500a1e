"""`python -m dragoman` is the command `dragoman`."""

from interfaces.cli import main

if __name__ == "__main__":
    main()
