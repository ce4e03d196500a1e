"""Counts the bytes of a request's body in the memory budget of all bodies."""

from typing import cast

from litestar.types import HTTPReceiveMessage, Receive

from application.system.memory_budget import Hold
from domain.errors import ErrorKind, ServiceError

_DECODED = 8
"""A complete body is decoded, to several times its size; until then it is its bytes."""
RETRY_AFTER_S = "1"


def counted_body(receive: Receive, hold: Hold) -> Receive:
    """`receive` of a body that is still arriving. Raises UNAVAILABLE `too_much_in_progress` when there is no room for it."""
    size = 0

    async def counted() -> HTTPReceiveMessage:
        nonlocal size
        message = cast(HTTPReceiveMessage, await receive())
        if message["type"] == "http.request":
            size += len(message["body"])
            is_whole = not message["more_body"]
            if not hold.grow(size if is_whole else size // _DECODED):
                raise ServiceError(
                    "too_much_in_progress",
                    ErrorKind.UNAVAILABLE,
                    "The service has too many large requests in progress. Try again later.",
                    extra={"retry_after_s": RETRY_AFTER_S},
                )
        return message

    return cast(Receive, counted)
