"""One request to a provider and its answer, streamed or whole: the part both wires share.

Below: aiohttp's client (provider_http.py). Above: the adapters, which say what to send and how to read the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from application.models.ports import ModelError, ModelEvent, ModelReply, TextDelta
from application.system.event_stream import EventStream, OversizedEvent
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import is_decoded
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    invalid_reply,
    stalled,
    without_secrets,
)
from infrastructure.secrets.redaction import Redactor

_DRAIN_S = 0.25
_MAX_EVENT_BYTES = 4 * 1024 * 1024


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


class Answer(Protocol):
    """What a provider answers. `close` it when it is not read to its end too."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def is_complete(self) -> bool:
        """Whether the body was read to its end."""
        ...

    async def read(self) -> bytes:
        """What has come of the body, without compression; empty at its end. Raises aiohttp.ClientError, TimeoutError."""
        ...

    def close(self) -> None:
        """Discard the rest of the body. The connection is closed if there is any."""
        ...


class ProviderAddress(Protocol):
    """Where the requests of one provider go, with its headers."""

    async def send(self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None) -> Answer:
        """The answer with its head. `silence_s` bounds each wait for bytes, `total_s` the exchange to its end. Raises
        aiohttp.ClientError, EgressBlockedError, TimeoutError."""
        ...


class ProviderHttp(Protocol):
    """HTTP to providers."""

    def to(self, url: str, headers: Mapping[str, str]) -> ProviderAddress:
        """An address and the headers of each request to it."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """Sends requests of one provider. `redactor` knows the provider's key."""

    provider: ProviderAddress
    streaming: bool
    patience: Patience
    monotonic: Callable[[], float]
    redactor: Redactor

    async def run(self, body: bytes, reader: ReplyReader) -> AsyncIterator[ModelEvent]:
        """The reply as it comes. The connection is closed with the iterator; it serves the next request if the answer
        was read to its end."""
        patience = self.patience
        try:
            if self.streaming:
                answer = await self.provider.send(body, silence_s=patience.stall_s)
            else:
                answer = await self.provider.send(body, total_s=patience.reply_s)
        except (aiohttp.ClientError, EgressBlockedError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=False) from exc
        try:
            if not is_decoded(answer.headers.get("content-encoding", "identity")):
                raise invalid_reply("compressed its answer in a way that was not asked for")
            if answer.status != 200:
                raise error_of_answer(answer.status, answer.headers, await _read(answer, MAX_ERROR_BYTES))
            if self._is_event_stream(answer.headers.get("content-type", "")):
                async for text in self._streamed(answer, reader):
                    yield TextDelta(text=text)
                await _drain(answer)
            elif text := reader.read_whole(await self._read_reply(answer)):
                yield TextDelta(text=text)
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=self.streaming) from exc
        except ModelError as error:
            raise without_secrets(error, self.redactor) from error.__cause__
        finally:
            answer.close()
        yield reader.reply()  # after the connection is given back, since a caller may never ask for more

    async def _streamed(self, answer: Answer, reader: ReplyReader) -> AsyncIterator[str]:
        """The texts of the stream, until the reader has all or the stream ends."""
        intake = _StreamIntake(reader, self.patience, self.monotonic)
        while not reader.is_done and (chunk := await answer.read()):
            if text := intake.take(chunk):
                yield text

    def _is_event_stream(self, content_type: str) -> bool:
        """Some servers answer a request for a stream in one piece, and some forget to call a stream one."""
        if content_type == "text/event-stream":
            return True
        media_type = content_type.partition(";")[0].strip().lower()
        return media_type == "text/event-stream" or (self.streaming and not media_type.endswith("json"))

    async def _read_reply(self, answer: Answer) -> bytes:
        limit = self.patience.max_reply_bytes
        data = await _read(answer, limit + 1)
        if len(data) > limit:
            raise invalid_reply("sent a reply that is too large")
        return data


class _StreamIntake:
    """Hands the events of a stream to its reader, and notices when there is too much of it or no progress."""

    def __init__(self, reader: ReplyReader, patience: Patience, monotonic: Callable[[], float]) -> None:
        self._reader = reader
        self._patience = patience
        self._monotonic = monotonic
        self._events = EventStream(_MAX_EVENT_BYTES)
        self._received = 0
        self._progress_at = monotonic()

    def take(self, chunk: bytes) -> str:
        """The text that `chunk` adds. The HTTP client ends a stream without bytes; a stream of nothing but comments and
        pings ends here."""
        self._received += len(chunk)
        if self._received > self._patience.max_reply_bytes:
            raise invalid_reply("sent a reply that is too large")
        read, added, progress = self._reader.read_event, "", False
        for event in self._events.feed(chunk):
            if isinstance(event, OversizedEvent):
                raise _too_large()
            text = read(event.data) if event.data else None
            if text is not None:
                progress = True
                if text:
                    added += text
        if self._events.unfinished_bytes > _MAX_EVENT_BYTES:
            raise _too_large()
        now = self._monotonic()
        if progress:
            self._progress_at = now
        elif now - self._progress_at > self._patience.stall_s:
            raise stalled()
        return added


def _too_large() -> ModelError:
    return invalid_reply("sent an event that is too large")


async def _read(answer: Answer, limit: int) -> bytes:
    """The body, cut at `limit` bytes."""
    data = bytearray()
    while len(data) < limit and (chunk := await answer.read()):
        data += chunk
    return bytes(data[:limit])


async def _drain(answer: Answer) -> None:
    """Read the end of the body, so that the connection can serve again; a server that holds it open loses it."""
    if answer.is_complete:
        return
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await answer.read():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return
