"""Input that an MCP server requests in the middle of a call (MCP 2026-07-28, client/elicitation):
questions and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

from domain.json_value import JsonObject, JsonValue

MAX_ROUNDS = 10
"""A call is abandoned after this many rounds of questions."""
ACCOUNT_QUESTION = "dragoman/account"
"""Id of our own question: to connect the person's account at the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """A question to the people who follow the run: a form (`schema` describes the content of its
    answer) or a page to visit (`url`).

    `request_id` is the server's name for the question; where the question is shown, it is unique
    among all questions of the call.
    """

    request_id: str
    message: str
    schema: JsonObject | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.url is None):
            raise ValueError("an elicitation has either a schema or a url")

    @property
    def is_for_account(self) -> bool:
        """Whether this asks for the person's account at the server."""
        return self.url is not None and self.request_id.rpartition(".")[2] == ACCOUNT_QUESTION

    @property
    def account_page(self) -> str | None:
        """The path and query of the page where the account is connected, if this asks for it."""
        return None if self.url is None or not self.is_for_account else account_path(self.url)

    def as_json(self) -> JsonObject:
        """`{request_id, message, schema | url}`."""
        asked: JsonObject = {"schema": self.schema} if self.url is None else {"url": self.url}
        return {"request_id": self.request_id, "message": self.message, **asked}

    @classmethod
    def from_json(cls, data: JsonObject) -> "Elicitation":
        return cls(
            request_id=cast(str, data["request_id"]),
            message=cast(str, data["message"]),
            schema=cast("JsonObject | None", data.get("schema")),
            url=cast("str | None", data.get("url")),
        )


def account_path(url: str) -> str:
    """The path and query of the page where an account is connected, for a link from another page of
    the console."""
    _, scheme_ends, rest = url.partition("://")
    return f"/{rest.partition('/')[2]}" if scheme_ends else url


class ElicitationAction(StrEnum):
    """How a question was answered; the values are the protocol's."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationAnswer:
    """An answer. Only an accepted form has `content`."""

    action: ElicitationAction
    content: JsonObject | None = None

    def as_json(self) -> JsonObject:
        """In the protocol's form (ElicitResult)."""
        answer: JsonObject = {"action": self.action.value}
        if self.content is not None:
            answer["content"] = self.content
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRound:
    """The questions that a call waits for, and what is sent along when the call is repeated.

    - `answers` are keyed by the server's names of the questions, and may include those of earlier
      rounds.
    - `request_state` is an opaque value that the server gets back.
    - `number` is 1 for the first round.
    """

    number: int
    questions: tuple[Elicitation, ...]
    answers: Mapping[str, JsonObject] = field(default_factory=dict)
    request_state: str | None = None

    @property
    def current(self) -> Elicitation | None:
        """The first unanswered question, under its public name; None when all are answered."""
        for question in self.questions:
            if question.request_id not in self.answers:
                return replace(question, request_id=f"{self.number}.{question.request_id}")
        return None

    def answered(self, answer: ElicitationAnswer) -> "InputRound":
        """The round with an answer to the current question."""
        open_ids = (question.request_id for question in self.questions if question.request_id not in self.answers)
        return replace(self, answers={**self.answers, next(open_ids): answer.as_json()})

    def as_json(self) -> JsonObject:
        """For encrypted storage."""
        questions: list[JsonValue] = [question.as_json() for question in self.questions]
        return {
            "number": self.number,
            "questions": questions,
            "answers": dict(self.answers),
            "request_state": self.request_state,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "InputRound":
        questions = cast("list[JsonObject]", data["questions"])
        return cls(
            number=cast(int, data["number"]),
            questions=tuple(Elicitation.from_json(question) for question in questions),
            answers=cast("dict[str, JsonObject]", data["answers"]),
            request_state=cast("str | None", data["request_state"]),
        )
