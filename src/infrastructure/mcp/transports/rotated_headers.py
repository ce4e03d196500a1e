"""Headers with secrets that are rotated elsewhere: read again when the server refuses them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from infrastructure.mcp.transports.remote import sendable

_UNAUTHORIZED = 401


class RotatedHeaders:
    """The `Credentials` of an endpoint. `forget` drops values in memory, so that `read` has those
    of now."""

    def __init__(
        self,
        headers: Mapping[str, str],
        *,
        read: Callable[[], Awaitable[Mapping[str, str]]],
        forget: Callable[[], None],
    ) -> None:
        self._headers = sendable(headers)
        self._read = read
        self._forget = forget

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool:
        """Whether the secrets are others now. Raises TransportFailedError."""
        if status != _UNAUTHORIZED:
            return False
        self._forget()
        self._headers = sendable(await self._read())
        return self._headers != dict(sent)
