"""Counts the bytes of a request's body in the memory budget of all bodies."""

from typing import cast

from litestar.types import HTTPReceiveMessage, Receive

from application.system.memory_budget import Hold
from domain.errors import ErrorKind, ServiceError

_DECODED = 8
"""A complete body is decoded, to several times its size; until then, and once the request is
answered, it is its bytes."""
RETRY_AFTER_S = "1"


class CountedBody:
    """The body of a request that is still arriving.

    - Once it is decoded, only its bytes are kept: when its reader waits for the client to leave, or
      the response starts.
    - `is_awaited`: whether its reader waits for the client now.
    """

    def __init__(self, receive: Receive, hold: Hold) -> None:
        self._receive = receive
        self._hold = hold
        self._size = 0
        self._is_whole = False
        self.is_awaited = False

    async def receive(self) -> HTTPReceiveMessage:
        """The next part. Raises UNAVAILABLE `too_much_in_progress` when there is no room for it."""
        is_arriving = not self._is_whole
        if not is_arriving:
            self.decoded()
        self.is_awaited = True
        try:
            message = cast(HTTPReceiveMessage, await self._receive())
        finally:
            self.is_awaited = False
        if is_arriving and message["type"] == "http.request":
            self._size += len(message["body"])
            self._is_whole = not message["more_body"]
            if not self._hold.grow(self._size if self._is_whole else self._size // _DECODED):
                raise ServiceError(
                    "too_much_in_progress",
                    ErrorKind.UNAVAILABLE,
                    "The service has too many large requests in progress. Try again later.",
                    extra={"retry_after_s": RETRY_AFTER_S},
                )
        return message

    def decoded(self) -> None:
        """The body is needed no more."""
        self._hold.settle(self._size // _DECODED)
