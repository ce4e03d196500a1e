"""Derived ids of traces and spans: a resumed run continues its trace, and a record that is sent
twice names the same span."""

import hashlib

from domain.ids import RunId, ToolCallId, WorkflowRunId


def trace_id(run_id: RunId | WorkflowRunId | ToolCallId) -> int:
    """The 128-bit trace id of a run, a workflow run or a call through the gateway. It equals
    Langfuse's `create_trace_id(seed=run_id)`, so that users can find the trace."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:16], "big")


def run_span_id(run_id: RunId) -> int:
    """The 64-bit id of the run's own span, the root of its trace."""
    return _span_id("run", run_id)


def generation_span_id(run_id: RunId, turn: int) -> int:
    """The 64-bit span id of the model call of a turn."""
    return _span_id("generation", run_id, str(turn))


def tool_call_span_id(call_id: ToolCallId) -> int:
    return _span_id("tool_call", call_id)


def workflow_span_id(run_id: WorkflowRunId) -> int:
    """The 64-bit id of a workflow run's own span, the root of its trace."""
    return _span_id("workflow", run_id)


def node_span_id(run_id: WorkflowRunId, node_id: str) -> int:
    """The 64-bit span id of a node of a workflow run."""
    return _span_id("workflow_node", run_id, node_id)


def traceparent(run_id: RunId | WorkflowRunId | ToolCallId, call_id: ToolCallId) -> str:
    """The W3C header with the tool call as the parent, sampled
    (https://www.w3.org/TR/trace-context/)."""
    return f"00-{trace_id(run_id):032x}-{tool_call_span_id(call_id):016x}-01"


def _span_id(*parts: str) -> int:
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1  # an id of zeros is invalid
