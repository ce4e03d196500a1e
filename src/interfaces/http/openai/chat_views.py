"""Chat completions and their chunks as JSON."""

import json
from collections.abc import Mapping
from typing import NotRequired, TypedDict

from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunStatus
from interfaces.http.openai.ids import call_id, completion_id, is_client_call
from interfaces.http.openai.replies import Spending

_UNKNOWN_INPUT = {"text_tokens": None, "image_tokens": None, "cache_write_tokens": None}
_FILTERED = (IncompleteReason.CONTENT_FILTER, IncompleteReason.REFUSAL)


class CalledFunctionView(TypedDict):
    name: str
    arguments: str


class ToolCallView(TypedDict):
    id: str
    type: str
    function: CalledFunctionView


class DeltaToolCallView(ToolCallView):
    index: int


class AnswerView(TypedDict):
    """`reasoning_content` is what other servers of this protocol call the summary of the
    reasoning."""

    role: str
    content: str | None
    refusal: str | None
    annotations: list[object]
    audio: None
    function_call: None
    tool_calls: NotRequired[list[ToolCallView]]
    reasoning_content: NotRequired[str]


class ChoiceView(TypedDict):
    index: int
    message: AnswerView
    finish_reason: str
    logprobs: None


class UsageView(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: Mapping[str, int | None]
    completion_tokens_details: Mapping[str, int | None]


class CompletionView(TypedDict):
    id: str
    object: str
    created: int
    model: str
    choices: list[ChoiceView]
    usage: UsageView
    metadata: Mapping[str, object]
    service_tier: None
    system_fingerprint: None
    moderation: None


class DeltaView(TypedDict, total=False):
    role: str
    content: str
    reasoning_content: str
    tool_calls: list[DeltaToolCallView]


class ChunkChoiceView(TypedDict):
    index: int
    delta: DeltaView
    finish_reason: str | None
    logprobs: None


class ChunkView(TypedDict):
    id: str
    object: str
    created: int
    model: str
    choices: list[ChunkChoiceView]
    service_tier: None
    system_fingerprint: None
    usage: NotRequired[UsageView | None]


def finish_reason(run: Run) -> str:
    if run.status is RunStatus.REQUIRES_ACTION:
        return "tool_calls" if any(map(is_client_call, run.pending)) else "stop"
    if run.status is RunStatus.HALTED or run.incomplete_reason in _FILTERED:
        return "content_filter"
    return "length" if run.status is RunStatus.INCOMPLETE else "stop"


def tool_calls(run: Run) -> list[ToolCallView]:
    """The pending calls of the client's functions."""
    return [
        {
            "id": call_id(run.id, use.id),
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(use.params, ensure_ascii=False)},
        }
        for use in run.pending
        if is_client_call(use)
    ]


def completion_view(run: Run, model: str, text: str, reasoning: str, spent: Spending) -> CompletionView:
    calls = tool_calls(run)
    answer: AnswerView = {
        "role": "assistant",
        "content": text or None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
    }
    if calls:
        answer["tool_calls"] = calls
    if reasoning:
        answer["reasoning_content"] = reasoning
    choice: ChoiceView = {"index": 0, "message": answer, "finish_reason": finish_reason(run), "logprobs": None}
    return {
        "id": completion_id(run.id),
        "object": "chat.completion",
        "created": int(run.created_at.timestamp()),
        "model": model,
        "choices": [choice],
        "usage": usage_view(spent),
        "metadata": run.metadata,
        "service_tier": None,
        "system_fingerprint": None,
        "moderation": None,
    }


def chunk_view(run: Run, model: str, delta: DeltaView | None, finish: str | None = None) -> ChunkView:
    """A chunk with this change; None has no choice."""
    choice: ChunkChoiceView = {"index": 0, "delta": delta or {}, "finish_reason": finish, "logprobs": None}
    return {
        "id": completion_id(run.id),
        "object": "chat.completion.chunk",
        "created": int(run.created_at.timestamp()),
        "model": model,
        "choices": [] if delta is None else [choice],
        "service_tier": None,
        "system_fingerprint": None,
    }


def usage_view(spent: Spending) -> UsageView:
    return {
        "prompt_tokens": spent.input_tokens,
        "completion_tokens": spent.output_tokens,
        "total_tokens": spent.input_tokens + spent.output_tokens,
        "prompt_tokens_details": {**_UNKNOWN_INPUT, "cached_tokens": spent.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "text_tokens": None,
            "reasoning_tokens": spent.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
