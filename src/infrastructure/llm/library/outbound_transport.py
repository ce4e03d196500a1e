"""httpx2 transport over our HTTP clients, so that egress guard, proxies and limits hold for SDKs of
vendors."""

from collections.abc import AsyncIterator

import httpx2

from infrastructure.http.sessions import ENCODINGS
from infrastructure.llm.exchange import Answer, ProviderHttp
from infrastructure.llm.library.library_call import CURRENT_CALL, LibraryCall

_NOT_FORWARDED = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "authorization", "x-goog-api-key"}
)
"""Headers that our client writes, and those of the SDK's own credentials, which are dummies."""
_DECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that no longer hold for the decompressed body."""


class OutboundTransport(httpx2.AsyncBaseTransport):
    """Requests of CURRENT_CALL, with the headers of `http`'s identity, without redirects. Raises
    ModelError."""

    def __init__(self, http: ProviderHttp) -> None:
        self._http = http

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        call = CURRENT_CALL.get()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED}
        headers["accept-encoding"] = ENCODINGS
        address = self._http.to(str(request.url), headers)
        answer, refusal = await call.send(address, await request.aread())
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _DECODED]
        if answer.status != 200:
            return httpx2.Response(answer.status, headers=kept, content=refusal, request=request)
        return httpx2.Response(200, headers=kept, stream=_Body(call, answer), request=request)


class _Body(httpx2.AsyncByteStream):
    """The decompressed body. Closing it before its end closes the connection."""

    def __init__(self, call: LibraryCall, answer: Answer) -> None:
        self._call = call
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._call.read(self._answer):
            yield chunk

    async def aclose(self) -> None:
        self._answer.close()
