"""Traces in Langfuse."""

from collections.abc import Collection
from importlib import import_module
from typing import Protocol, cast

from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observation_sender import ObservationSender, ObservationSink
from infrastructure.tracing.sending import OpenSender, SendingTracer

_SINK = "infrastructure.tracing.langfuse_sink"


class LangfuseTracer(SendingTracer):
    """Tells Langfuse of runs. `content` False keeps prompts, arguments and results out; secrets are kept out always.

    `foreign_headers` names headers of another trace backend that the environment holds: Langfuse gets no values of them."""

    def __init__(
        self,
        *,
        public_key: str,
        secret_key: str,
        base_url: str,
        content: bool,
        redactor: Redactor,
        timeout_s: float = 5.0,
        foreign_headers: Collection[str] = (),
        sender: OpenSender = ObservationSender,
    ) -> None:
        def connect() -> ObservationSink:
            # Not an import above: loading the SDK takes a second, which must not be the start's but the thread's.
            return cast(_SinkModule, import_module(_SINK)).LangfuseSink(
                public_key=public_key,
                secret_key=secret_key,
                base_url=base_url,
                content=content,
                redactor=redactor,
                timeout_s=timeout_s,
                foreign_headers=foreign_headers,
            )

        super().__init__(connect, sender=sender)


class _OpenSink(Protocol):
    def __call__(
        self,
        *,
        public_key: str,
        secret_key: str,
        base_url: str,
        content: bool,
        redactor: Redactor,
        timeout_s: float,
        foreign_headers: Collection[str],
    ) -> ObservationSink: ...


class _SinkModule(Protocol):
    LangfuseSink: _OpenSink
