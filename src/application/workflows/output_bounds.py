"""How much a node may put out."""

from application.workflows.template_filling import unhurried
from domain.json_value import JsonValue, compact_json, size_within
from domain.workflows.execution import NodeError

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
"""As JSON: as much as a request may bring."""


async def output_fault(output: JsonValue) -> NodeError | None:
    """What is wrong with an output, if it is too large."""
    if await unhurried(lambda: _is_within_bounds(output), (output,)):
        return None
    detail = f"What the node put out is larger than {MAX_OUTPUT_BYTES // (1024 * 1024)} MiB."
    return NodeError(code="output_too_large", detail=detail)


def _is_within_bounds(output: JsonValue) -> bool:
    # Counted first: what stands in it a million times over is one value until it is written down.
    if size_within(output, MAX_OUTPUT_BYTES) > MAX_OUTPUT_BYTES:
        return False
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in compact_json(output)) <= MAX_OUTPUT_BYTES
