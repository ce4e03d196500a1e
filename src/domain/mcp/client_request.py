"""Requests of a server to the client in the middle of a call (MCP client/elicitation,
client/sampling, client/roots), and the answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from domain.json_value import JsonObject


class ClientRequestKind(StrEnum):
    """The kinds of requests; the values are the protocol's methods."""

    ELICITATION = "elicitation/create"
    SAMPLING = "sampling/createMessage"
    ROOTS = "roots/list"

    @property
    def capability(self) -> str:
        """The capability by which a client declares support."""
        return self.value.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """One request. `key` is the server's name for it among those sent together; `params` are the
    protocol's, bounded and sanitized."""

    key: str
    kind: ClientRequestKind
    params: JsonObject

    def as_json(self) -> JsonObject:
        """For encrypted storage."""
        return {"key": self.key, "kind": self.kind.value, "params": self.params}

    @classmethod
    def from_json(cls, data: JsonObject) -> "ClientRequest":
        return cls(
            key=cast(str, data["key"]),
            kind=ClientRequestKind(cast(str, data["kind"])),
            params=cast(JsonObject, data["params"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAnswer:
    """The answer to a request: the protocol's result, or `refusal`, the message of a JSON-RPC
    error.

    A person who declines a form has given an answer: its action is `decline`.
    """

    result: JsonObject | None = None
    refusal: str = ""

    @property
    def word(self) -> str:
        """The answer in one word, for the audit trail: the action of an elicitation, otherwise
        `given` or `refused`."""
        if self.result is None:
            return "refused"
        action = self.result.get("action")
        return action if isinstance(action, str) else "given"

    def as_json(self) -> JsonObject:
        """For encrypted storage."""
        return {"result": self.result, "refusal": self.refusal}

    @classmethod
    def from_json(cls, data: JsonObject) -> "ClientAnswer":
        return cls(result=cast("JsonObject | None", data["result"]), refusal=cast(str, data["refusal"]))


def unanswered(kind: ClientRequestKind, why: str, *, declined: bool = False) -> ClientAnswer:
    """The answer when no client can be asked: a form is cancelled, or `declined`; for other kinds
    the protocol has only an error."""
    if kind is ClientRequestKind.ELICITATION:
        return ClientAnswer(result={"action": "decline" if declined else "cancel"})
    return ClientAnswer(refusal=why)
