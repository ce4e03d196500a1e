"""Waiting for the client of a request to disconnect (ASGI)."""

from litestar.types import Receive


async def client_left(receive: Receive) -> None:
    """Returns when the client has gone. For a request whose body has been read, if it has one."""
    while (await receive())["type"] != "http.disconnect":
        pass
