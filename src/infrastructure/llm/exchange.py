"""One request to a provider and its reply, streamed or whole. Above: the adapters of the wire
formats. Below: `provider_http.py`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import aiohttp
import msgspec
from yarl import URL

from application.models.ports import ModelError, ModelEvent, ModelReply, ReasoningDelta, TextDelta
from application.system.event_stream import EventStream, OversizedEventError
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import is_decoded
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    invalid_reply,
    oversized,
    stalled,
    without_secrets,
)
from infrastructure.secrets.redaction import Redactor

_DRAIN_S = 0.25
_MAX_EVENT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLimits:
    """Limits of one reply. `stall_s` bounds the silence before and in a stream (comments and pings
    count as silence), `reply_s` a reply that is not a stream, `max_reply_bytes` its size,
    `error_s` the body of an error."""

    stall_s: float = 120.0
    reply_s: float = 600.0
    error_s: float = 10.0
    max_reply_bytes: int = 32 * 1024 * 1024


class ReplyReader(Protocol):
    """Parses one reply. Raises ModelError for protocol violations and for errors in the reply."""

    @property
    def ignored_types(self) -> frozenset[bytes]:
        """Types of events that the reader does not need. Events without a type are read by their
        data."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether the provider has ended the reply."""
        ...

    def read_event(self, data: bytes) -> str | None:
        """Add an event; returns its text, or None for an event without progress (a ping)."""
        ...

    def read_whole(self, data: bytes) -> str:
        """Add a whole reply; returns its text."""
        ...

    def taken_reasoning(self) -> str:
        """The shown reasoning that was read since the last call."""
        ...

    def reply(self) -> ModelReply:
        """The complete reply. Raises ModelError `model_invalid_reply` if it is incomplete."""
        ...


class Answer(Protocol):
    """Response of a provider. `close` it unless it is read to its end."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def is_complete(self) -> bool:
        """Whether the body was read to its end."""
        ...

    async def read(self) -> bytes:
        """The next decompressed bytes; empty at the end. Raises aiohttp.ClientError,
        TimeoutError."""
        ...

    def close(self) -> None:
        """Discard the rest of the body, and its connection."""
        ...


class ProviderAddress(Protocol):
    """The address of one provider, with its headers."""

    async def send(self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None) -> Answer:
        """Send a request; returns after the response head. `silence_s` bounds each wait for bytes,
        `total_s` the exchange. Raises aiohttp.ClientError, EgressBlockedError, TimeoutError."""
        ...

    async def get(self, *, total_s: float) -> Answer:
        """Read the address, like `send`."""
        ...


class ProviderHttp(Protocol):
    def to(self, url: str | URL, headers: Mapping[str, str]) -> ProviderAddress:
        """A URL object is sent in its own encoding."""
        ...

    async def aclose(self) -> None: ...


class OtherBodies(Protocol):
    """Other forms of a request, for a provider that refuses it."""

    def after(self, error: ModelError) -> bytes | None:
        """The body that is sent after this refusal; None to raise it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExchange:
    """Sends requests to one provider. `redactor` hides the provider's key."""

    provider: ProviderAddress
    reply_limits: ReplyLimits
    monotonic: Callable[[], float]
    redactor: Redactor

    async def run(
        self, body: bytes, reader: ReplyReader, others: OtherBodies | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the reply. Closing the iterator closes the connection; a fully read one is
        reused."""
        answer = await self._sent(body)
        try:
            while answer.status != 200:
                other = await self._other_body(answer, others)
                answer.close()
                answer = await self._sent(other)
            if not is_decoded(answer.headers.get("content-encoding", "identity")):
                raise invalid_reply("compressed its answer in a way that was not asked for")
            streamed = self._is_event_stream(answer.headers.get("content-type", ""))
            if streamed:
                async for delta in self._streamed(answer, reader):
                    yield delta
                await _drain(answer)
            else:
                text = reader.read_whole(await self._read_reply(answer))
                if reasoning := reader.taken_reasoning():
                    yield ReasoningDelta(text=reasoning)
                if text:
                    yield TextDelta(text=text)
            reply = _complete(reader) if streamed else replace(_complete(reader), streamed=False)
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=True) from exc
        except UnicodeDecodeError as exc:
            raise invalid_reply("sent text that is not UTF-8") from exc
        except ModelError as error:
            raise without_secrets(error, self.redactor) from error.__cause__
        finally:
            answer.close()
        yield reply  # the connection is released first: the caller may stop here

    async def _sent(self, body: bytes) -> Answer:
        """The answer, after its head. Raises ModelError."""
        try:
            return await self.provider.send(body, silence_s=self.reply_limits.stall_s)
        except (aiohttp.ClientError, EgressBlockedError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=False) from exc

    async def _other_body(self, answer: Answer, others: OtherBodies | None) -> bytes:
        """What is sent instead of the refused request. Raises ModelError if nothing is."""
        if not is_decoded(answer.headers.get("content-encoding", "identity")):
            raise invalid_reply("compressed its answer in a way that was not asked for")
        said = await read_body(answer, MAX_ERROR_BYTES, within_s=self.reply_limits.error_s)
        error = error_of_answer(answer.status, answer.headers, said)
        other = None if others is None else others.after(error)
        if other is None:
            raise error
        return other

    async def _streamed(self, answer: Answer, reader: ReplyReader) -> AsyncIterator[TextDelta | ReasoningDelta]:
        """The deltas of the stream, until the reader or the stream ends. Reasoning comes before the
        text that follows from it."""
        intake = _StreamIntake(reader, self.reply_limits, self.monotonic)
        while not reader.is_done and (chunk := await answer.read()):
            text = intake.take(chunk)
            if reasoning := reader.taken_reasoning():
                yield ReasoningDelta(text=reasoning)
            if text:
                yield TextDelta(text=text)

    def _is_event_stream(self, content_type: str) -> bool:
        """Some servers answer a stream request whole, and some stream without declaring it."""
        if content_type == "text/event-stream":
            return True
        media_type = content_type.partition(";")[0].strip().lower()
        return media_type == "text/event-stream" or not media_type.endswith("json")

    async def _read_reply(self, answer: Answer) -> bytes:
        limit = self.reply_limits.max_reply_bytes
        data = await read_body(answer, limit + 1, within_s=self.reply_limits.reply_s)
        if len(data) > limit:
            raise oversized("a reply")
        if not answer.is_complete:
            raise stalled()
        return data


class _StreamIntake:
    """Passes the events of a stream to its reader, and bounds its size and its silence."""

    def __init__(self, reader: ReplyReader, reply_limits: ReplyLimits, monotonic: Callable[[], float]) -> None:
        self._reader = reader
        self._reply_limits = reply_limits
        self._monotonic = monotonic
        self._events = EventStream(_MAX_EVENT_BYTES)
        self._received = 0
        self._progress_at = monotonic()

    def take(self, chunk: bytes) -> str:
        """The text added by `chunk`. The HTTP client bounds streams without bytes; this bounds
        streams of comments and pings."""
        self._received += len(chunk)
        if self._received > self._reply_limits.max_reply_bytes:
            raise oversized("a reply")
        read, ignored = self._reader.read_event, self._reader.ignored_types
        added, progress = "", False
        try:
            events = self._events.feed_pairs(chunk)
        except OversizedEventError as exc:
            raise _too_large() from exc
        for type_, data in events:
            if type_ in ignored:
                progress = True
                continue
            text = read(data) if data else None
            if text is not None:
                progress = True
                if text:
                    added += text
        if self._events.unfinished_bytes > _MAX_EVENT_BYTES:
            raise _too_large()
        now = self._monotonic()
        if progress:
            self._progress_at = now
        elif now - self._progress_at > self._reply_limits.stall_s:
            raise stalled()
        return added


def _complete(reader: ReplyReader) -> ModelReply:
    try:
        return reader.reply()
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise invalid_reply("sent a reply that cannot be read") from exc


def _too_large() -> ModelError:
    return oversized("an event")


async def read_body(answer: Answer, limit: int, *, within_s: float) -> bytes:
    """The body, truncated at `limit` bytes and after `within_s` seconds: it may come byte by
    byte."""
    data = bytearray()
    deadline = asyncio.timeout(within_s)
    try:
        async with deadline:
            while len(data) < limit and (chunk := await answer.read()):
                data += chunk
    except TimeoutError:
        if not deadline.expired():
            raise
    return bytes(data[:limit])


async def _drain(answer: Answer) -> None:
    """Read the rest of the body so that the connection is reusable; a server that delays it loses
    the connection."""
    if answer.is_complete:
        return
    try:
        async with asyncio.timeout(_DRAIN_S):
            while await answer.read():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return
