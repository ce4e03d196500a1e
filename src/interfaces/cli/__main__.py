"""`python -m interfaces.cli` is the command `dragoman`."""

from interfaces.cli import main

main()
