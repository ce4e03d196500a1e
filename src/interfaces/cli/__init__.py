"""The command line `dragoman`: a client of the running service, or of one opened for a single
command."""

from interfaces.cli.app import main

__all__ = ["main"]
