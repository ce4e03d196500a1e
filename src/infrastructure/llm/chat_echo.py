"""How the model's earlier messages go back over chat completions. Providers differ, and say so by
refusals."""

import re
from dataclasses import dataclass, replace

from application.models.ports import ModelError
from domain.model_providers.provider import EchoReasoning
from infrastructure.llm.items_origin import model_family
from infrastructure.llm.wire_cache import Form

_KEEPS_REASONING = re.compile(r"deepseek|kimi|minimax|mimo")
"""Families that require the reasoning of all tool loops of a thread, not only of the last one."""
_SIGNS_CALLS = re.compile(r"gemini-(?![12][.-])")
"""Families that require a signature with the first call of each step."""

_REASONING = re.compile(r"\breasoning(?:_content|_details)?\b", re.IGNORECASE)
_MISSING = re.compile(r"\b(?:missing|lacks|required|must be (?:passed back|provided))\b", re.IGNORECASE)
_MISSES_SIGNATURE = re.compile(r"missing (?:a )?.?thought_?signature", re.IGNORECASE)
_OTHER_FIELDS = re.compile(r"thought_signature|extra_content|provider_specific_fields", re.IGNORECASE)
_UNWANTED = re.compile(
    r"unknown|unexpected|unsupported|unrecognized|extra|additional|forbidden|should not|must not|remove"
    r"|(?:not|isn't) (?:allowed|permitted|supported)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEcho:
    """What goes back with the model's messages, besides text and calls.

    - `reasoning`: where the reasoning of messages with items of this origin goes back. `never`
      sends no items.
    - `neutral`: the form of messages without such items.
    """

    reasoning: EchoReasoning
    neutral: Form = Form.NEUTRAL

    def after(self, error: ModelError) -> "ChatEcho | None":
        """What is sent instead after this refusal; None if nothing else would help."""
        said = error.provider_error
        if said is None or error.code != "model_rejected" or self.reasoning is EchoReasoning.NEVER:
            return None
        if _MISSES_SIGNATURE.search(said.message):
            return None if self.neutral is Form.WITH_SIGNATURE else replace(self, neutral=Form.WITH_SIGNATURE)
        names_reasoning = _REASONING.search(said.message)
        if names_reasoning and _MISSING.search(said.message):
            return self._with_more()
        if (names_reasoning or _OTHER_FIELDS.search(said.message)) and _UNWANTED.search(said.message):
            return self._with_less()
        return None

    def _with_more(self) -> "ChatEcho | None":
        if self.neutral is not Form.WITH_PLACEHOLDER:
            return replace(self, neutral=Form.WITH_PLACEHOLDER)
        if self.reasoning is EchoReasoning.TOOL_LOOP:
            return replace(self, reasoning=EchoReasoning.ALWAYS)
        return None

    def _with_less(self) -> "ChatEcho":
        if self.reasoning is EchoReasoning.ALWAYS:
            return replace(self, reasoning=EchoReasoning.TOOL_LOOP)
        return ChatEcho(reasoning=EchoReasoning.NEVER)


MAX_CHANGES = 4
"""Of what is sent, in one call."""


def chat_echo(wanted: EchoReasoning, model_name: str) -> ChatEcho:
    """What is sent to a model that has refused nothing yet."""
    family = model_family(model_name)
    neutral = Form.WITH_SIGNATURE if _SIGNS_CALLS.search(family) else Form.NEUTRAL
    if wanted is EchoReasoning.TOOL_LOOP and _KEEPS_REASONING.search(family):
        wanted = EchoReasoning.ALWAYS
    return ChatEcho(reasoning=wanted, neutral=neutral)
