"""Tracers to a Langfuse of the test, each with its own public key."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.langfuse_sink import LangfuseSink
from infrastructure.tracing.observation_sender import BackgroundSender, ObservationSender
from infrastructure.tracing.sending import OpenSender, SendingTracer
from tests.integration.tracing.receivers import (
    ReceivedSpan,
    langfuse_receiver,
)

SECRET = "hunter22-hunter22"
T = TypeVar("T")
_numbers = itertools.count(1)


class PatientSender(BackgroundSender[T]):
    """Closing it waits until a busy machine has sent everything."""

    async def close(self, timeout_s: float = 50.0) -> None:
        await super().close(timeout_s)


def a_public_key() -> str:
    """A new one: the SDK has one client for each public key and process, also after it was
    closed."""
    return f"pk-lf-{next(_numbers)}"


def a_langfuse_tracer(
    url: str,
    *,
    content: bool = True,
    public_key: str | None = None,
    foreign_headers: Collection[str] = (),
    timeout_s: float = 60.0,
    sender: OpenSender = ObservationSender,
) -> SendingTracer:
    """A tracer as the service has it, without limits of its own; whoever makes it closes it."""
    key = public_key or a_public_key()
    return SendingTracer(
        lambda: LangfuseSink(
            public_key=key,
            secret_key="sk-lf-2",
            base_url=url,
            content=content,
            redactor=Redactor([SECRET]),
            foreign_headers=foreign_headers,
            timeout_s=timeout_s,
        ),
        sender=sender,
    )


@asynccontextmanager
async def langfuse_tracer(
    url: str, *, content: bool = True, public_key: str | None = None, foreign_headers: Collection[str] = ()
) -> AsyncIterator[SendingTracer]:
    """A tracer that does not wait for company before it sends; closing it is part of every test."""
    tracer = a_langfuse_tracer(
        url,
        content=content,
        public_key=public_key,
        foreign_headers=foreign_headers,
        sender=partial(PatientSender, collect_s=0.01),
    )
    try:
        yield tracer
    finally:
        async with asyncio.timeout(60):
            await tracer.close()


async def traced(tell: Callable[[SendingTracer], None], count: int = 1, *, content: bool = True) -> list[ReceivedSpan]:
    with langfuse_receiver() as receiver:
        async with langfuse_tracer(receiver.url, content=content) as tracer:
            tell(tracer)
            return await asyncio.to_thread(receiver.spans, count)
