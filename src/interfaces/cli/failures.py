"""Expected failures of a command: a line for a person, one more for each fault of the input, and an
exit code."""

from collections.abc import Collection, Sequence

from domain.nearest import nearest

FAILED = 1
BAD_USAGE = 2
REQUIRES_ACTION = 3
INTERRUPTED = 130
"""128 + SIGINT, as shells say it."""


def with_faults(detail: str, faults: Sequence[tuple[str, str]]) -> str:
    """The detail with a path and a message for each fault of the input: one on the same line,
    several on a line each."""
    told = [f"{path}: {message}" if path else message for path, message in faults]
    return (" " if len(told) == 1 else "\n  ").join([detail, *told])


class CommandFailure(Exception):
    """A command failed. The message is safe to show."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class BadUsage(CommandFailure):
    """The arguments are invalid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=BAD_USAGE)


def wrong_choice(option: str, given: str, choices: Collection[str]) -> BadUsage:
    """An option that takes one of a few words got another."""
    near = nearest(given, choices)
    meant = "" if near is None else f" Did you mean {near!r}?"
    return BadUsage(f"{option} takes one of {', '.join(choices)}, not {given[:40]!r}.{meant}")


class ServiceUnreachable(CommandFailure):
    """No response from the service at `address`."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"The service at {address} cannot be reached ({reason}). Is it running? Start it with `dragoman serve`, "
            "or set DRAGOMAN_URL to where it is."
        )


class ConnectionLost(CommandFailure):
    """The service stopped in the middle of a response."""

    def __init__(self, address: str) -> None:
        super().__init__(f"The connection to the service at {address} broke.")


class UnexpectedAnswer(CommandFailure):
    """A response that this command does not understand."""

    def __init__(self, detail: str) -> None:
        super().__init__(
            f"The service's answer is not understood ({detail}). Is DRAGOMAN_URL right, and the service of this version?"
        )


class ApiProblem(CommandFailure):
    """The service rejected the request: a problem document (RFC 9457) with status and code."""

    def __init__(self, *, status: int, code: str, detail: str, violations: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(
            with_faults(detail, violations),
            exit_code=BAD_USAGE if status in _INPUT_FAULTS else FAILED,
        )
        self.status = status
        self.code = code

    def with_hint(self, hint: str) -> "ApiProblem":
        """The same problem, with a next step for the person."""
        return ApiProblem(status=self.status, code=self.code, detail=f"{self.message} {hint}".rstrip())


_INPUT_FAULTS = frozenset({400, 413, 422})
