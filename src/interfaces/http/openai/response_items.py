"""Items of responses as JSON."""

import json

from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from interfaces.http.openai.ids import call_id
from interfaces.http.openai.response_ids import item_id

OWN_TOOLS = "dragoman"
"""The label of tools that belong to no MCP server."""


def message_item(message_id: str, text: str | None, status: str, *, phase: str | None = None) -> JsonObject:
    """`phase` is left out as long as it is not known: the Open Responses schema has no null for
    it."""
    content: list[JsonValue] = [] if text is None else [text_part(text)]
    item: JsonObject = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }
    return item if phase is None else {**item, "phase": phase}


def phase_of(message: JsonObject) -> str:
    """Whether a reply comes before calls or is an answer."""
    content = message["content"]
    parts = content if isinstance(content, list) else []
    calls = any(isinstance(part, dict) and part["type"] == "tool_use" for part in parts)
    return "commentary" if calls else "final_answer"


def text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning_item(message_id: str, text: str | None, status: str) -> JsonObject:
    summary: list[JsonValue] = [] if text is None else [{"type": "summary_text", "text": text}]
    return {"id": item_id("rs", message_id), "type": "reasoning", "summary": summary, "status": status}


def function_item(run_id: RunId, use: JsonObject, status: str, arguments: str) -> JsonObject:
    return {
        "id": item_id("fc", str(use["id"])),
        "type": "function_call",
        "call_id": call_id(run_id, ToolCallId(str(use["id"]))),
        "name": str(use["name"]),
        "arguments": arguments,
        "status": status,
        "caller": None,
        "namespace": None,
    }


def mcp_call_item(
    call: JsonObject, status: str, *, arguments: str, output: str | None = None, approval: str | None = None
) -> JsonObject:
    """`call` has `id` and `name` as models see it. An output with `status` failed is the error.
    `approval` is the id of the request for an approval that the call had."""
    label, name = label_and_name(str(call["name"]))
    failed = status == "failed"
    error: JsonValue = {"type": "mcp_tool_execution_error", "content": output} if failed else None
    return {
        "id": item_id("mcp", str(call["id"])),
        "type": "mcp_call",
        "server_label": label,
        "name": name,
        "arguments": arguments,
        "output": None if failed else output,
        "error": error,
        "status": status,
        "approval_request_id": approval,
    }


def approval_item(run_id: RunId, use: JsonObject) -> JsonObject:
    label, name = label_and_name(str(use["name"]))
    return {
        "id": approval_request_id(run_id, ToolCallId(str(use["id"]))),
        "type": "mcp_approval_request",
        "server_label": label,
        "name": name,
        "arguments": arguments_text(use["params"]),
    }


def approval_request_id(run_id: RunId, tool_call_id: ToolCallId) -> str:
    """As `call_id`, for a call that requires approval."""
    return f"mcpr_{call_id(run_id, tool_call_id).partition('_')[2]}"


def arguments_text(params: JsonValue) -> str:
    return json.dumps(params, ensure_ascii=False)


def label_and_name(tool: str) -> tuple[str, str]:
    """The server and its tool, from the name that models see."""
    kind, _, rest = tool.partition("__")
    slug, _, name = rest.partition("__")
    return (slug, name) if kind == "mcp" and name else (OWN_TOOLS, tool)
