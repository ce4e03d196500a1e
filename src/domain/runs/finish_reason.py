"""Why a model's reply ended, in one vocabulary for all providers."""

from enum import StrEnum

from domain.runs.limits import IncompleteReason


class FinishReason(StrEnum):
    """`length`: cut at the output limit. `paused`: the provider wants the same request again, with the reply so far.
    `canary`: we ended the reply. `other`: a word of the provider that we do not know."""

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
        """Why the reply is not a whole answer, or None if it is one."""
        return _INCOMPLETE.get(self)

    @property
    def forbids_calls(self) -> bool:
        """Whether no tool call of the reply is to be executed: the reply was withdrawn, or no model could read the
        results."""
        return self in _FORBIDS_CALLS


_INCOMPLETE = {
    FinishReason.LENGTH: IncompleteReason.MAX_OUTPUT_TOKENS,
    FinishReason.CONTENT_FILTER: IncompleteReason.CONTENT_FILTER,
    FinishReason.REFUSAL: IncompleteReason.REFUSAL,
    FinishReason.CONTEXT_EXCEEDED: IncompleteReason.CONTEXT_EXCEEDED,
}
_FORBIDS_CALLS = frozenset({FinishReason.CONTENT_FILTER, FinishReason.REFUSAL, FinishReason.CONTEXT_EXCEEDED})
