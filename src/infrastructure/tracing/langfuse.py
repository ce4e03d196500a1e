"""The Langfuse adapter of the tracing ports."""

from collections.abc import Collection
from importlib import import_module
from typing import Protocol, cast

from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observation_sender import ObservationSender, ObservationSink
from infrastructure.tracing.sending import OpenSender, SendingTracer

_SINK = "infrastructure.tracing.langfuse_sink"


class LangfuseTracer(SendingTracer):
    """Sends traces to Langfuse. `content` False omits prompts, arguments and results; secrets are
    always omitted.

    `foreign_headers` names headers of another trace backend in the environment. Langfuse gets them
    empty.
    """

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
            # Not imported above: loading the SDK takes a second, which belongs to the thread, not
            # to the start.
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
