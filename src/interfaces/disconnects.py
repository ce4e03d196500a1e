"""Clients that disconnect: waiting for it, and a body that ends with it (ASGI)."""

from collections.abc import AsyncGenerator

from litestar.exceptions import InternalServerException
from litestar.types import Receive

from domain.errors import ErrorKind, ServiceError


async def client_left(receive: Receive) -> None:
    """Return when the client has disconnected. The request body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def whole(parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The parts of a request body. Raises INVALID `client_disconnected` when the client disconnects
    before the last one; the framework reports that as an error of the service."""
    try:
        async for part in parts:
            yield part
    except InternalServerException as exc:
        raise ServiceError(
            "client_disconnected", ErrorKind.INVALID, "The client disconnected before the request body was complete."
        ) from exc
