"""HTTP of a provider whose requests carry an identity. The wires above it know nothing of
identities."""

from collections.abc import Mapping

from yarl import URL

from infrastructure.llm.exchange import Answer, ProviderAddress, ProviderHttp
from infrastructure.llm.identities.access_tokens import Headers


class IdentifiedHttp:
    """`inner`, with the headers of an identity in each request."""

    def __init__(self, inner: ProviderHttp, headers: Headers) -> None:
        self._inner = inner
        self._headers = headers

    def to(self, url: str | URL, headers: Mapping[str, str]) -> ProviderAddress:
        return _IdentifiedAddress(self._inner, url, headers, self._headers)

    async def aclose(self) -> None:
        """The connections are those of `inner`, which others use too."""


class _IdentifiedAddress:
    def __init__(self, http: ProviderHttp, url: str | URL, headers: Mapping[str, str], identity: Headers) -> None:
        self._http = http
        self._url = URL(url)
        self._headers = headers
        self._identity = identity

    async def send(self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None) -> Answer:
        """Raises also ModelError, of the identity."""
        return await (await self._address()).send(body, silence_s=silence_s, total_s=total_s)

    async def get(self, *, total_s: float) -> Answer:
        return await (await self._address()).get(total_s=total_s)

    async def _address(self) -> ProviderAddress:
        return self._http.to(self._url, {**self._headers, **await self._identity()})
