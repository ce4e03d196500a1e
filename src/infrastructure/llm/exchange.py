"""One request to a provider and its answer, streamed or whole: the part both wires share.

Below: httpx. Above: the adapters, which say what to send and how to read the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from application.models.ports import ModelEvent, ModelReply, TextDelta
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    invalid_reply,
    stalled,
)
from infrastructure.llm.sse import EventStreamParser, EventTooLargeError

_DRAIN_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long an adapter waits. `stall_s` bounds the silence before and inside a stream (comments and pings count as
    silence), `reply_s` the wait for an answer that is not streamed; `max_reply_bytes` bounds what is read of one."""

    stall_s: float = 120.0
    reply_s: float = 600.0
    max_reply_bytes: int = 32 * 1024 * 1024


class ReplyReader(Protocol):
    """Puts one reply together. Raises ModelError for what breaks the protocol or tells of an error."""

    @property
    def is_done(self) -> bool:
        """Whether the provider has said that nothing more comes."""
        ...

    def read_event(self, data: bytes) -> str | None:
        """Take the data of one event. The text it adds, or None for an event that shows no progress (a ping)."""
        ...

    def read_whole(self, data: bytes) -> str:
        """Take a reply that came in one piece. Its text."""
        ...

    def reply(self) -> ModelReply:
        """The reply, or ModelError `model_invalid_reply` if it is not complete."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """Sends requests of one provider over one transport."""

    http: httpx.AsyncBaseTransport
    url: httpx.URL
    headers: httpx.Headers = field(repr=False)  # they hold the key
    streaming: bool
    patience: Patience
    monotonic: Callable[[], float]

    async def run(self, body: bytes, reader: ReplyReader) -> AsyncIterator[ModelEvent]:
        """The reply as it comes. The connection ends with the iterator; it is kept for the next request if the answer
        was read to its end."""
        try:
            # Not by a client: what it adds to a request (cookies, redirects, authentication) costs more than sending it.
            response = await self.http.handle_async_request(self._request(body))
        except httpx.HTTPError as exc:
            raise error_of_transport(exc, streaming=False) from exc
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        try:
            if response.status_code != 200:
                raise error_of_answer(response.status_code, response.headers, await _read(stream, MAX_ERROR_BYTES))
            if self._is_event_stream(response):
                intake = _StreamIntake(reader, self.patience, self.monotonic)
                chunks = aiter(stream)
                async for chunk in chunks:
                    if text := intake.take(chunk):
                        yield TextDelta(text=text)
                    if reader.is_done:
                        await _drain(chunks)
                        break
            elif text := reader.read_whole(await self._read_reply(stream)):
                yield TextDelta(text=text)
        except httpx.HTTPError as exc:
            raise error_of_transport(exc, streaming=self.streaming) from exc
        finally:
            await stream.aclose()
        yield reader.reply()  # after the connection is given back, since a caller may never ask for more

    def _request(self, body: bytes) -> httpx.Request:
        read_s = self.patience.stall_s if self.streaming else self.patience.reply_s
        extensions = {"timeout": {"read": read_s}}
        # As a stream: for a content httpx would make headers, each time, that the transport makes itself.
        stream = httpx.ByteStream(body)
        return httpx.Request("POST", self.url, headers=self.headers, stream=stream, extensions=extensions)

    def _is_event_stream(self, response: httpx.Response) -> bool:
        """Some servers answer a request for a stream in one piece, and some forget to call a stream one."""
        content_type: str = response.headers.get("content-type", "")
        media_type = content_type.partition(";")[0].strip().lower()
        return media_type == "text/event-stream" or (self.streaming and not media_type.endswith("json"))

    async def _read_reply(self, stream: httpx.AsyncByteStream) -> bytes:
        data = await _read(stream, self.patience.max_reply_bytes + 1)
        if len(data) > self.patience.max_reply_bytes:
            raise invalid_reply("sent a reply that is too large")
        return data


class _StreamIntake:
    """Hands the events of a stream to its reader, and notices when there is too much of it or no progress."""

    def __init__(self, reader: ReplyReader, patience: Patience, monotonic: Callable[[], float]) -> None:
        self._reader = reader
        self._patience = patience
        self._monotonic = monotonic
        self._parser = EventStreamParser()
        self._received = 0
        self._progress_at = monotonic()

    def take(self, chunk: bytes) -> str:
        """The text that `chunk` adds. The HTTP client ends a stream without bytes; a stream of nothing but comments and
        pings ends here."""
        self._received += len(chunk)
        if self._received > self._patience.max_reply_bytes:
            raise invalid_reply("sent a reply that is too large")
        try:
            events = self._parser.feed(chunk)
        except EventTooLargeError as exc:
            raise invalid_reply("sent an event that is too large") from exc
        texts = [text for data in events if (text := self._reader.read_event(data)) is not None]
        if texts:
            self._progress_at = self._monotonic()
        elif self._monotonic() - self._progress_at > self._patience.stall_s:
            raise stalled()
        return "".join(texts)


async def _read(stream: httpx.AsyncByteStream, limit: int) -> bytes:
    """The body, cut at `limit` bytes."""
    data = bytearray()
    async for chunk in stream:
        data += chunk
        if len(data) >= limit:
            break
    return bytes(data[:limit])


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end of the body, so that the connection can serve again; a server that holds it open loses it."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx.HTTPError):
        return
