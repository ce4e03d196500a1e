"""The type of every tracing adapter: all tracing ports, and `close`."""

from typing import Protocol

from application.tracing.ports import GatewayTracer, Tracer, WorkflowTracer


class ClosableTracer(Tracer, GatewayTracer, WorkflowTracer, Protocol):
    async def close(self) -> None:
        """Send what is buffered, in bounded time. Never raises."""
