"""Bounds on the output of a node."""

from application.workflows.template_filling import unhurried
from domain.json_value import JsonValue, compact_json, size_within
from domain.workflows.execution import NodeError

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
"""As JSON: the size limit of a request body."""


async def output_fault(output: JsonValue) -> NodeError | None:
    """The fault of an output that is too large, else None."""
    if await unhurried(lambda: _is_within_bounds(output), (output,)):
        return None
    detail = f"The output of the node is larger than {MAX_OUTPUT_BYTES // (1024 * 1024)} MiB."
    return NodeError(code="output_too_large", detail=detail)


def _is_within_bounds(output: JsonValue) -> bool:
    # Counted first: a shared value that occurs a million times becomes large only when encoded.
    if size_within(output, MAX_OUTPUT_BYTES) > MAX_OUTPUT_BYTES:
        return False
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in compact_json(output)) <= MAX_OUTPUT_BYTES
