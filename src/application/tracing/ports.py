"""Port to a tracing backend."""

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
from domain.tools.tool import Tool
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRecord:
    """A finished model call. `input`/`output` are what was sent and answered."""

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
    """A finished tool call; `tool` is None for one the run does not have."""

    run: Run
    call: ToolCall
    tool: Tool | None
    text: str
    is_error: bool
    started_at: datetime
    finished_at: datetime

    @classmethod
    def of(cls, run: Run, call: ToolCall, tool: Tool | None) -> "ToolCallRecord":
        """Of a settled call, as the ledger has it: whoever tells of it, and however often, tells the same."""
        if call.result is None or call.settled_at is None:
            raise ValueError(f"call {call.id} is not settled")
        return cls(
            run=run,
            call=call,
            tool=tool,
            text=call.result.text,
            is_error=call.result.is_error,
            started_at=call.settled_at - timedelta(milliseconds=call.duration_ms or 0),
            finished_at=call.settled_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCallRecord:
    """A finished call of a gateway session; its text and arguments hold no canary token."""

    session: GatewaySession
    agent: Agent
    tool: Tool | None
    settlement: GatewaySettlement

    @property
    def started_at(self) -> datetime:
        """When it was sent."""
        return self.settlement.at - timedelta(milliseconds=self.settlement.duration_ms)


class GatewayTracer(Protocol):
    """Traces of gateway sessions, each a trace of its own. Like `Tracer`, whose adapters do this too."""

    @property
    def enabled(self) -> bool:
        """Whether anybody listens."""
        ...

    def gateway_call(self, record: GatewayCallRecord) -> None:
        """A call is over."""
        ...

    def gateway_context(self, session: GatewaySession, call_id: ToolCallId) -> dict[str, str]:
        """W3C trace context for a call to an MCP server whose caller sent none; empty when tracing is off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRecord:
    """A workflow run that has ended, and what it executed."""

    run: WorkflowRun
    definition: WorkflowDefinition


class WorkflowTracer(Protocol):
    """Traces of workflow runs; those of their agents' runs are parts of them. Like `Tracer`, whose adapters do this too."""

    def workflow_finished(self, record: WorkflowRecord) -> None:
        """The workflow run has ended."""
        ...


class Tracer(Protocol):
    """Traces, told of after the fact. Ids derive from run, turn and call, so a resumed run goes on with its trace.
    Nothing here blocks, waits or raises."""

    @property
    def enabled(self) -> bool:
        """Whether anybody listens; what is only made to be told of need not be made otherwise."""
        ...

    def generation(self, record: GenerationRecord) -> None:
        """A model call is over."""
        ...

    def tool_call(self, record: ToolCallRecord) -> None:
        """A tool call is over."""
        ...

    def run_finished(self, run: Run, agent: Agent | None) -> None:
        """The run has ended; its trace is complete. `agent` is None for one that is not known any more."""
        ...

    def trace_context(self, run: Run, call_id: ToolCallId) -> dict[str, str]:
        """W3C trace context (`traceparent`) for a call to an MCP server, or an empty mapping when tracing is off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceAddress:
    """How people find a trace: its id (32 hexadecimal digits), and its page if the backend has one."""

    trace_id: str
    url: str | None


class TraceAddresses(Protocol):
    """Where the traces of runs are to be found."""

    def of(self, run: Run) -> TraceAddress | None:
        """The trace of the run; None where nothing is traced."""
        ...
