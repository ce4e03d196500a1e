"""How much a node may put out."""

from domain.json_value import JsonValue, compact_json, size_within
from domain.workflows.execution import NodeError

MAX_OUTPUT_BYTES = 10 * 1024 * 1024
"""As JSON: as much as a request may bring."""


def output_fault(output: JsonValue) -> NodeError | None:
    """What is wrong with an output, if it is too large."""
    # Counted first: what stands in it a million times over is one value until it is written down.
    if size_within(output, MAX_OUTPUT_BYTES) <= MAX_OUTPUT_BYTES:
        written = sum(len(piece.encode("utf-8", "surrogatepass")) for piece in compact_json(output))
        if written <= MAX_OUTPUT_BYTES:
            return None
    detail = f"What the node put out is larger than {MAX_OUTPUT_BYTES // (1024 * 1024)} MiB."
    return NodeError(code="output_too_large", detail=detail)
