"""`python -I -m dragoman.run_module MODULE ARGUMENTS…`: runs a module of the four packages in a
separate process, whose isolated interpreter finds only what is installed."""

import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
