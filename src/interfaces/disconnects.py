"""Waiting for the client of a request to disconnect (ASGI)."""

from litestar.types import Receive


async def client_left(receive: Receive) -> None:
    """Return when the client has disconnected. The request body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
