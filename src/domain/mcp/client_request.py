"""What a server asks of the client in the middle of a call (MCP client/elicitation, client/sampling, client/roots), and answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from domain.json_value import JsonObject


class ClientRequestKind(StrEnum):
    """What is asked for; values are the protocol's methods."""

    ELICITATION = "elicitation/create"
    SAMPLING = "sampling/createMessage"
    ROOTS = "roots/list"

    @property
    def capability(self) -> str:
        """The capability by which a client says that it can be asked."""
        return self.value.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """One question. `key` is the server's name for it among those that it asks together; `params` are the protocol's, bounded and
    cleaned."""

    key: str
    kind: ClientRequestKind
    params: JsonObject

    def as_json(self) -> JsonObject:
        """For storage, to be encrypted."""
        return {"key": self.key, "kind": self.kind.value, "params": self.params}

    @classmethod
    def from_json(cls, data: JsonObject) -> "ClientRequest":
        """The inverse of `as_json`."""
        return cls(
            key=cast(str, data["key"]),
            kind=ClientRequestKind(cast(str, data["kind"])),
            params=cast(JsonObject, data["params"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswer:
    """What became of a question: the protocol's result, or nothing and why (`refusal`, a JSON-RPC error's message). A person who
    does not want to fill in a form has given an answer, whose action is `decline`."""

    result: JsonObject | None = None
    refusal: str = ""

    @property
    def word(self) -> str:
        """The answer in a word, for the audit trail: what an elicitation's action is, else `given` or `refused`."""
        if self.result is None:
            return "refused"
        action = self.result.get("action")
        return action if isinstance(action, str) else "given"

    def as_json(self) -> JsonObject:
        """For storage, to be encrypted."""
        return {"result": self.result, "refusal": self.refusal}

    @classmethod
    def from_json(cls, data: JsonObject) -> "ClientAnswer":
        """The inverse of `as_json`."""
        return cls(result=cast("JsonObject | None", data["result"]), refusal=cast(str, data["refusal"]))


def unanswered(kind: ClientRequestKind, why: str, *, declined: bool = False) -> ClientAnswer:
    """Nobody answers: a form is dismissed, or `declined`; for all else the protocol has only an error."""
    if kind is ClientRequestKind.ELICITATION:
        return ClientAnswer(result={"action": "decline" if declined else "cancel"})
    return ClientAnswer(refusal=why)
