"""Reads what a person types at a command. Secrets come from the terminal or a pipe, never from
arguments, which all users of the machine can see."""

import getpass
import sys

from interfaces.cli.failures import INTERRUPTED, BadUsage, CommandFailure


def read_secret(prompt: str) -> str:
    """Hidden input after the prompt, or all of a pipe except its last line end. Raises BadUsage."""
    if sys.stdin.isatty():
        try:
            return getpass.getpass(prompt)
        except KeyboardInterrupt:
            raise CommandFailure("Interrupted.", exit_code=INTERRUPTED) from None
        except EOFError:
            raise BadUsage("No value was given.") from None
    try:
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise BadUsage("The value is not text.") from None


def read_line(prompt: str) -> str | None:
    """A line after the prompt, which is on stderr; None at the end of input or after Ctrl-C."""
    sys.stderr.write(prompt if sys.stdin.isatty() else "")
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    except (KeyboardInterrupt, UnicodeDecodeError):
        line = ""
    if not line:
        sys.stderr.write("\n" if sys.stdin.isatty() else "")
        return None
    return line.rstrip("\r\n")
