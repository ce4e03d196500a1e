"""botocore's requests over our HTTP clients: it signs and decodes, ours send. Its calls are made in
threads."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from yarl import URL

from infrastructure.llm.exchange import Answer, ProviderAddress, ProviderHttp
from infrastructure.llm.library.library_call import CURRENT_CALL, LibraryCall

_NOT_FORWARDED = frozenset({"host", "connection", "content-length", "transfer-encoding", "expect", "accept-encoding"})
"""Headers that our client writes."""
_SESSION_TOKEN = "X-Amz-Security-Token"
T = TypeVar("T")


class BotocoreTransport:
    """Handler of botocore's event `before-send`: its answer takes the place of botocore's own
    request, so botocore opens no connection. The call is CURRENT_CALL; the thread is one that a
    task of `loop` awaits, or has given up. Tokens of temporary credentials are given to `hide`."""

    def __init__(self, http: ProviderHttp, loop: asyncio.AbstractEventLoop, *, hide: Callable[[str], object]) -> None:
        self._http = http
        self._loop = loop
        self._hide = hide

    def __call__(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        call = CURRENT_CALL.get()
        headers = {
            name: value if isinstance(value, str) else value.decode("latin-1")
            for name, value in request.headers.items()
            if name.lower() not in _NOT_FORWARDED
        }
        # Encoded as it was signed.
        address = self._http.to(URL(request.url, encoded=True), {**headers, "accept-encoding": "identity"})
        answer, refusal = self._run(self._sent(call, address, _bytes_of(request.body), headers.get(_SESSION_TOKEN)))
        raw = _RawBody(call, answer, self, refusal) if answer.status == 200 else _ReadBody(refusal)
        return AWSResponse(request.url, answer.status, _lowered(answer.headers), raw)

    async def _sent(
        self, call: LibraryCall, address: ProviderAddress, body: bytes, token: str | None
    ) -> tuple[Answer, bytes]:
        if token is not None:
            self._hide(token)
        return await call.send(address, body)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def read(self, call: LibraryCall, answer: Answer) -> bytes:
        return self._run(call.read(answer))

    def close(self, answer: Answer) -> None:
        self._loop.call_soon_threadsafe(answer.close)


class _ReadBody:
    """A body as botocore reads it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._body

    def close(self) -> None:
        """There is nothing to release."""


class _RawBody(_ReadBody):
    """A body that is read as it comes. Closing it ends a read in another thread."""

    def __init__(self, call: LibraryCall, answer: Answer, transport: BotocoreTransport, body: bytes) -> None:
        super().__init__(body)
        self._call = call
        self._answer = answer
        self._transport = transport

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        while chunk := self._transport.read(self._call, self._answer):
            yield chunk

    def close(self) -> None:
        self._transport.close(self._answer)


def _bytes_of(body: object) -> bytes:
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else b""


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
