"""The JSON shape of a run in HTTP and webhooks. It contains no secrets."""

from domain.json_value import JsonObject
from domain.runs.run import Run
from domain.threads.message_json import content_to_json, timestamp, tool_use_to_json


def run_to_json(run: Run) -> JsonObject:
    """A run with its input, usage and pending calls; missing values are null."""
    usage = run.usage
    return {
        "id": run.id,
        "thread_id": run.thread_id,
        "agent_id": run.agent_id,
        "agent_version": run.agent_version,
        "status": run.status.value,
        "lane": run.lane.value,
        "model": run.model,
        "input": [content_to_json(part) for part in run.input],
        "output_schema": run.output_schema,
        "output": run.output,
        "output_json": run.output_json,
        "error": None if run.error is None else {"code": run.error.code, "detail": run.error.detail},
        "incomplete_reason": None if run.incomplete_reason is None else run.incomplete_reason.value,
        "pending": [tool_use_to_json(use) for use in run.pending],
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cost_usd": float(usage.cost_usd),
            "turns": usage.turns,
            "tool_calls": usage.tool_calls,
            "estimated": usage.estimated,
        },
        "attempt": run.attempt,
        "created_at": timestamp(run.created_at),
        "started_at": None if run.started_at is None else timestamp(run.started_at),
        "finished_at": None if run.finished_at is None else timestamp(run.finished_at),
        "metadata": run.metadata,
        "started_by": run.requested_by,
        "retry_of": run.retry_of,
    }
