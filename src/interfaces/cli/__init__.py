"""The command line `dragoman`: a client of the service that owns HOME, or of one opened here for a single command."""

from interfaces.cli.app import main

__all__ = ["main"]
