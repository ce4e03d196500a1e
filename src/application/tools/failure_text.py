"""Maps failures of tools to text for the model: the server's own text, or a fixed sentence."""

import math

from application.mcp.ports import McpFailure, McpFailureKind
from application.tools.result_text import FAILURE_LIMIT_BYTES, cleaned, cut
from domain.policy.decision import Decision
from domain.tools.result import ToolResult

UNKNOWN_TOOL = (
    "A tool with the name {name} was not found. Only use tools that are available in your given list of tools."
)
MISSING_BINDING = "MCP tool configuration error: missing integration ID"


_CUT_ARGUMENTS = (
    "The reply was cut at the output limit before the arguments of this call were complete, so the tool was not called. "
    "Send shorter arguments, or several smaller calls."
)
_NAME_LIMIT = 128
_OURS = {
    McpFailureKind.NOT_CONNECTED: "MCP server not connected.",
    McpFailureKind.CONNECTION_LOST: (
        "The connection to the MCP server was lost during the call; it may have taken effect."
    ),
    McpFailureKind.INVALID_REPLY: "The MCP server sent an invalid reply.",
    McpFailureKind.NEEDS_AUTH: (
        "The MCP server needs authorization: by an administrator or, if it is used with each person's own account, by the "
        "person, who connects the account in the console under My accounts. Continue without its tools."
    ),
    McpFailureKind.DISABLED: "MCP disabled.",
    McpFailureKind.NOT_INSTALLED: "MCP server not installed.",
    McpFailureKind.DEFINITION_CHANGED: "The definition of the tool has changed; nothing was sent.",
}
_CHANGED = (
    "The tool {name} was not called: its definition has changed since {since}. It cannot be used in this run any more; continue "
    "without it."
)


MALFORMED = "tool_arguments_malformed"
_DISABLED = f"mcp_{McpFailureKind.DISABLED.value}"
NEVER_MADE = frozenset({"tool_not_found", "tool_arguments_invalid", MALFORMED, "tool_arguments_cut", _DISABLED})
"""Codes of failures found before anything was called."""


def unknown_tool(name: str) -> ToolResult:
    """The model called a tool outside the toolset. The text has one line for any name."""
    shown = " ".join(cleaned(name).split())[:_NAME_LIMIT]
    return ToolResult.failed("tool_not_found", UNKNOWN_TOOL.format(name=shown))


def invalid_arguments(violations: tuple[str, ...]) -> ToolResult:
    """The arguments do not match the tool's schema; nothing was called."""
    listed = "\n".join(f"- {violation}" for violation in violations)
    text = f"The arguments do not fit the tool's schema, so it was not called:\n{listed}"
    return ToolResult.failed("tool_arguments_invalid", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def malformed_arguments(raw: str) -> ToolResult:
    """The arguments are not a JSON object; nothing was called."""
    text = f"The arguments are not a JSON object, so the tool was not called. They began: {raw[:200]!r}"
    return ToolResult.failed(MALFORMED, cut(cleaned(text), FAILURE_LIMIT_BYTES))


def cut_arguments() -> ToolResult:
    """The output limit of the model cut the arguments; nothing was called."""
    return ToolResult.failed("tool_arguments_cut", _CUT_ARGUMENTS)


def mcp_disabled() -> ToolResult:
    """MCP was switched off during the run; nothing was called."""
    return ToolResult.failed(_DISABLED, f"MCP tool execution failed: {_OURS[McpFailureKind.DISABLED]}")


def person_required(slug: str) -> ToolResult:
    """The server is used with each person's account, and a key started the call; nothing was
    sent."""
    text = (
        f"The MCP server {slug} is used with each person's own account, and an API key has none: a person who signed in "
        "must start this. Continue without its tools."
    )
    return ToolResult.failed("person_required", text)


def account_declined() -> ToolResult:
    """The person did not connect their account; nothing was sent."""
    return ToolResult.failed("account_declined", "The person declined to connect their account. Continue without it.")


def account_missing(url: str) -> ToolResult:
    """The client of the gateway cannot be asked; nothing was sent."""
    text = f"Nothing was sent: the person has not connected their account. They can do so at {url}; then call the tool again."
    return ToolResult.failed("account_missing", text)


def unregistered_tool(name: str) -> ToolResult:
    """The tool or its server was removed or left out during the run."""
    return ToolResult.failed("mcp_tool_unknown", f"MCP tool execution failed: Unknown tool: {name}")


def quarantined_tool(name: str) -> ToolResult:
    """The definition of the tool changed since its approval; nothing was called."""
    text = _CHANGED.format(name=name, since="it was approved, and an administrator has to approve it again")
    return ToolResult.blocked("mcp_tool_quarantined", text)


def changed_tool(name: str) -> ToolResult:
    """The definition of the tool changed since the run began; nothing was called."""
    return ToolResult.blocked("mcp_tool_changed", _CHANGED.format(name=name, since="this run began"))


def missing_binding() -> ToolResult:
    """The MCP tool has no binding to a server."""
    return ToolResult.failed("mcp_binding_missing", MISSING_BINDING)


def server_said_error(message: str) -> ToolResult:
    said = cut(cleaned(message).strip(), FAILURE_LIMIT_BYTES) or "the server gave no reason"
    return ToolResult.failed("mcp_tool_error", f"MCP tool execution failed: {said}")


def mcp_failure(failure: McpFailure, *, timeout_s: float, reference: str) -> ToolResult:
    """A call without a usable reply. `reference` is the id in the operator's log."""
    if failure.kind is McpFailureKind.SERVER_ERROR:
        message = f"MCP error {failure.rpc_code}: {failure.detail}"
        return ToolResult.failed(
            "mcp_server_error", f"MCP tool execution failed: {cut(cleaned(message), FAILURE_LIMIT_BYTES)}"
        )
    if failure.kind is McpFailureKind.TIMEOUT:
        sentence = f"The call timed out after {timeout_s:g} seconds; it may have taken effect."
    elif failure.kind is McpFailureKind.CONNECTION_LOST and failure.for_model is not None:
        sentence = cut(cleaned(failure.for_model), FAILURE_LIMIT_BYTES)
    elif failure.kind in (McpFailureKind.TOO_LARGE, McpFailureKind.BUSY):
        sentence = cut(cleaned(failure.detail), FAILURE_LIMIT_BYTES)
    else:
        sentence = _OURS[failure.kind]
    if failure.kind is McpFailureKind.NOT_CONNECTED and failure.retry_after_s is not None:
        sentence += f" It is tried again in {_seconds(failure.retry_after_s)}."
    return ToolResult.failed(
        f"mcp_{failure.kind.value}", f"MCP tool execution failed: {sentence} (reference {reference})"
    )


def _seconds(seconds: float) -> str:
    whole = max(1, math.ceil(seconds))
    return f"{whole} second{'' if whole == 1 else 's'}"


def mcp_unexpected(reference: str) -> ToolResult:
    """Internal error during an MCP call."""
    return ToolResult.failed(
        "mcp_unexpected", f"MCP tool execution failed unexpectedly: internal error (reference {reference})"
    )


def output_schema_violated(violations: tuple[str, ...]) -> ToolResult:
    """The result violates the output schema, and the server's mode is `enforce`."""
    listed = "; ".join(violations)
    text = f"MCP tool execution failed: the result does not fit the tool's output schema: {listed}"
    return ToolResult.failed("mcp_output_invalid", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def input_declined(question: str) -> ToolResult:
    """The server requested input, and its policy declines requests."""
    text = (
        "MCP tool execution failed: the server asked for input in the middle of the call, which was declined. "
        f"It asked: {question}"
    )
    return ToolResult.failed("mcp_input_declined", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def input_undeliverable(question: str, said: str) -> ToolResult:
    """A legacy server requested input and did not wait; the tool must not be called twice."""
    text = (
        "MCP tool execution failed: the server asked for input in the middle of the call, and its version of the protocol "
        f"has no way to give it later. It asked: {cut(question, 500)}\nWithout it, it answered: {said or 'nothing'}"
    )
    return ToolResult.failed("mcp_input_undeliverable", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def input_unsupported(methods: tuple[str, ...]) -> ToolResult:
    """The server requested input that runs do not provide (sampling, roots)."""
    text = f"MCP tool execution failed: the server asked for {', '.join(methods)} in the middle of the call, which was declined."
    return ToolResult.failed("mcp_input_declined", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def capabilities_missing(names: tuple[str, ...]) -> ToolResult:
    """The server requires capabilities that the client lacks; nothing was executed."""
    text = f"MCP tool execution failed: the server needs a client with {', '.join(names)}. The call was not made."
    return ToolResult.failed("mcp_capability_missing", text)


def asked_too_often(rounds: int) -> ToolResult:
    text = f"MCP tool execution failed: the server asked for input more than {rounds} times during one call."
    return ToolResult.failed("mcp_input_endless", text)


def input_lost() -> ToolResult:
    """The stored state for the server cannot be decrypted; nothing was sent."""
    text = "MCP tool execution failed: the answers to the server's questions can no longer be read. Call it again."
    return ToolResult.failed("mcp_input_lost", text)


def native_failure(code: str, message: str) -> ToolResult:
    """Expected failure of a native tool, in its own text."""
    return ToolResult.failed(code, cut(cleaned(message), FAILURE_LIMIT_BYTES * 4) or "The tool failed.")


def native_timeout(timeout_s: float) -> ToolResult:
    return ToolResult.failed("tool_timeout", f"The tool timed out after {timeout_s:g} seconds and was stopped.")


def abandoned(timeout_s: float) -> ToolResult:
    """A tool that did not stop at its timeout."""
    text = f"The tool timed out after {timeout_s:g} seconds and was abandoned; it may have taken effect."
    return ToolResult.failed("tool_timeout", text)


def native_unexpected(reference: str) -> ToolResult:
    """Internal error in a native tool."""
    return ToolResult.failed("tool_unexpected", f"The tool failed unexpectedly: internal error (reference {reference})")


def blocked_by_policy(decision: Decision) -> ToolResult:
    return ToolResult.blocked(decision.reason.value, cut(cleaned(decision.sentence), FAILURE_LIMIT_BYTES))


def halted(name: str) -> ToolResult:
    """A call beside the one that ended the run; it was not executed."""
    text = f"This call was not executed: the run was ended by policy because of a call of {name}."
    return ToolResult.blocked("run_halted", cut(cleaned(text), FAILURE_LIMIT_BYTES))


def too_many_calls(limit: int) -> ToolResult:
    """The reply requested more calls than a turn may have; this one was not executed."""
    return ToolResult.blocked(
        "too_many_calls",
        f"This call was not executed: at most {limit} tool calls of one reply are executed. Request it again if it is"
        " still needed.",
    )


def limit_reached(limit: str) -> ToolResult:
    """A limit of the run forbids the call; it was not executed."""
    return ToolResult.blocked(
        "limit_reached",
        f"This call was not executed: the run has reached its limit {limit}. Answer with what you have.",
    )
