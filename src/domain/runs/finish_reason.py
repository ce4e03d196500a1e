"""Finish reasons of model replies, with the same values for all providers."""

from enum import StrEnum

from domain.runs.limits import IncompleteReason


class FinishReason(StrEnum):
    """`length`: cut at the output limit. `paused`: the provider expects the same request again,
    with the reply so far. `canary`: Dragoman ended the reply. `other`: unknown reason of the
    provider."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    CONTEXT_EXCEEDED = "context_exceeded"
    PAUSED = "paused"
    CANARY = "canary"
    OTHER = "other"

    @property
    def incomplete_reason(self) -> IncompleteReason | None:
        """Why the reply is incomplete. None for a complete reply."""
        return _INCOMPLETE.get(self)

    @property
    def forbids_calls(self) -> bool:
        """Whether the tool calls of the reply must not be executed: the reply was withdrawn, or the
        context has no room for results."""
        return self in _FORBIDS_CALLS


_INCOMPLETE = {
    FinishReason.LENGTH: IncompleteReason.MAX_OUTPUT_TOKENS,
    FinishReason.CONTENT_FILTER: IncompleteReason.CONTENT_FILTER,
    FinishReason.REFUSAL: IncompleteReason.REFUSAL,
    FinishReason.CONTEXT_EXCEEDED: IncompleteReason.CONTEXT_EXCEEDED,
}
_FORBIDS_CALLS = frozenset({FinishReason.CONTENT_FILTER, FinishReason.REFUSAL, FinishReason.CONTEXT_EXCEEDED})
