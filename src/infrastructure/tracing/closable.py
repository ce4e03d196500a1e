"""What every adapter of tracing is: all ports, and an end."""

from typing import Protocol

from application.tracing.ports import GatewayTracer, Tracer, WorkflowTracer


class ClosableTracer(Tracer, GatewayTracer, WorkflowTracer, Protocol):
    """A tracer with an end."""

    async def close(self) -> None:
        """Send what is buffered, in bounded time. Never raises."""
        ...
