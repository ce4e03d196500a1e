"""One call of a model of the library, as our transports below its SDKs see it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import aiohttp

from application.models.ports import ModelError
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import is_decoded
from infrastructure.llm.exchange import Answer, ProviderAddress, ReplyLimits, read_body
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    gave_up,
    invalid_reply,
    oversized,
    without_secrets,
)
from infrastructure.secrets.redaction import Redactor


@dataclass(slots=True, kw_only=True)
class LibraryCall:
    """What happened below the SDK, which reports it less exactly. `error` is the first failure.
    Requests and reads end with the call, in whatever tasks they are."""

    limits: ReplyLimits
    redactor: Redactor
    error: ModelError | None = None
    received: int = 0
    answers: list[Answer] = field(default_factory=list)
    waiting: set["asyncio.Task[object]"] = field(default_factory=set)
    closed: bool = False

    async def send(self, address: ProviderAddress, body: bytes) -> tuple[Answer, bytes]:
        """The answer, and the body of a refusal. Raises ModelError."""
        with self._waiting():
            answer = await self._sent(address, body)
            self.answers.append(answer)
            return answer, await self._refusal(answer)

    async def _sent(self, address: ProviderAddress, body: bytes) -> Answer:
        try:
            return await address.send(body, silence_s=self.limits.stall_s)
        except (aiohttp.ClientError, EgressBlockedError, TimeoutError) as exc:
            raise self.failed(error_of_transport(exc, streaming=False)) from exc

    async def _refusal(self, answer: Answer) -> bytes:
        """The body, if the status is not 200."""
        if not is_decoded(answer.headers.get("content-encoding", "identity")):
            answer.close()
            raise self.failed(invalid_reply("compressed its answer in a way that was not asked for"))
        if answer.status == 200:
            return b""
        try:
            said = await read_body(answer, MAX_ERROR_BYTES, within_s=self.limits.error_s)
        except (aiohttp.ClientError, TimeoutError):
            said = b""
        finally:
            answer.close()
        self.failed(error_of_answer(answer.status, answer.headers, said))
        return said

    async def read(self, answer: Answer) -> bytes:
        """The next bytes of a reply; empty at its end. Raises ModelError."""
        try:
            with self._waiting():
                chunk = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise self.failed(error_of_transport(exc, streaming=True)) from exc
        self.received += len(chunk)
        if self.received > self.limits.max_reply_bytes:
            raise self.failed(oversized("a reply"))
        return chunk

    def close(self) -> None:
        """Close connections whose replies were not read to their ends, and end what waits for one:
        not every SDK does, and a thread cannot. Called in the event loop."""
        self.closed = True
        for task in self.waiting:
            task.cancel()
        for answer in self.answers:
            answer.close()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Raises ModelError after the call, which a thread may outlive."""
        task = asyncio.current_task()
        if self.closed or task is None:
            raise gave_up()
        self.waiting.add(task)
        try:
            yield
        finally:
            self.waiting.discard(task)

    def failed(self, error: ModelError) -> ModelError:
        self.error = self.error or without_secrets(error, self.redactor)
        return self.error


CURRENT_CALL: ContextVar[LibraryCall] = ContextVar("current_call")
"""Of the task, or of the thread that a task has an SDK use."""
