"""What a task asks its client for, and how a client may answer."""

import json
from dataclasses import dataclass
from enum import StrEnum

from domain.json_value import JsonObject
from domain.threads.message import ToolUse
from domain.threads.message_json import timestamp


class QuestionKind(StrEnum):
    """What kind of answer a question takes; the values are public."""

    APPROVAL = "approval"
    FORM = "form"
    PAGE = "page"
    RESULT = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A pending call of a run as a question. `id` names it in an answer."""

    id: str
    kind: QuestionKind
    text: str
    use: ToolUse

    def as_json(self) -> JsonObject:
        """`{id, kind, tool, arguments}`, and what answering needs: `reason` and `expiresAt`,
        `schema`, or `url`."""
        about: JsonObject = {
            "id": self.id,
            "kind": self.kind.value,
            "tool": self.use.name,
            "arguments": self.use.params,
        }
        if self.use.approval is not None:
            expires = timestamp(self.use.approval.expires_at)
            return {**about, "reason": self.use.approval.reason, "expiresAt": expires}
        if self.use.elicitation is not None:
            asks: JsonObject = {"message": self.use.elicitation.message}
            form = self.use.elicitation.schema
            return {**about, **asks, **({"url": self.use.elicitation.url} if form is None else {"schema": form})}
        return about


def asked_of(use: ToolUse) -> Question:
    """The question of a pending call. A later question of the same call has another id."""
    if use.approval is not None:
        called = f"{use.name}({json.dumps(use.params, ensure_ascii=False)})"
        text = f"Approve the call {called}? {use.approval.reason}".strip()
        return Question(id=f"{use.id}:{use.approval.approval_id}", kind=QuestionKind.APPROVAL, text=text, use=use)
    asks = use.elicitation
    if asks is None:
        text = f"Give the result of {use.name}({json.dumps(use.params, ensure_ascii=False)})."
        return Question(id=use.id, kind=QuestionKind.RESULT, text=text, use=use)
    is_form = asks.schema is not None
    text = asks.message if is_form else f"{asks.message} {asks.url}"
    kind = QuestionKind.FORM if is_form else QuestionKind.PAGE
    return Question(id=f"{use.id}:{asks.request_id}", kind=kind, text=text, use=use)
