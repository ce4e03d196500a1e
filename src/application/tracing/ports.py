"""Ports to tracing backends."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from application.models.ports import ModelReply, ModelRequest
from domain.agents.agent import Agent
from domain.gateway.call import GatewaySettlement
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId
from domain.runs.ledger import ToolCall
from domain.runs.provider_error import ProviderError
from domain.runs.run import Run
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRecord:
    """A finished model call with its request and reply."""

    run: Run
    agent: Agent
    turn: int
    request: ModelRequest
    reply: ModelReply | None
    error_code: str | None
    started_at: datetime
    finished_at: datetime
    provider_error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRecord:
    """A settled tool call. `tool` is None if the run has no such tool."""

    run: Run
    call: ToolCall
    tool: Tool | None

    @property
    def result(self) -> ToolResult:
        """Raises ValueError if the call is not settled."""
        return self.call.outcome[0]

    @property
    def started_at(self) -> datetime:
        return self.finished_at - timedelta(milliseconds=self.call.duration_ms or 0)

    @property
    def finished_at(self) -> datetime:
        return self.call.outcome[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCallRecord:
    """A finished call of a gateway session. Its text and arguments contain no canary token."""

    session: GatewaySession
    agent: Agent
    tool: Tool | None
    settlement: GatewaySettlement

    @property
    def started_at(self) -> datetime:
        return self.settlement.at - timedelta(milliseconds=self.settlement.duration_ms)


class GatewayTracer(Protocol):
    """Traces of gateway sessions, one trace per call. Adapters of `Tracer` implement this
    too."""

    @property
    def enabled(self) -> bool:
        """Whether a backend is configured."""

    def gateway_call(self, record: GatewayCallRecord) -> None:
        """Record a finished call."""

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        """W3C trace context for a call to an MCP server when the caller sent none; empty while
        tracing is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRecord:
    run: WorkflowRun
    definition: WorkflowDefinition


class WorkflowTracer(Protocol):
    """Traces of workflow runs, which include those of their agents' runs. Adapters of `Tracer`
    implement this too."""

    def workflow_finished(self, record: WorkflowRecord) -> None:
        """Record a finished workflow run."""


class Tracer(Protocol):
    """Traces, recorded after the fact. Ids derive from run, turn and call, so a resumed run
    continues its trace. No method blocks, waits or raises."""

    @property
    def enabled(self) -> bool:
        """Whether a backend is configured. Without one, records need not be built."""

    def generation(self, record: GenerationRecord) -> None:
        """Record a finished model call."""

    def tool_call(self, record: ToolCallRecord) -> None:
        """Record a finished tool call."""

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        """Record the end of a run; its trace is complete. `agent` is None if it no longer
        exists."""

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        """W3C trace context (`traceparent`) for a call to an MCP server; empty while tracing is
        off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAddress:
    """The id of a trace (32 hexadecimal digits), and its page if the backend has one."""

    trace_id: str
    url: str | None


class TraceAddresses(Protocol):
    def of(self, run: Run) -> TraceAddress | None:
        """The trace of the run; None while tracing is off."""
