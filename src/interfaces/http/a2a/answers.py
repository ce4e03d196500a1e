"""Reads a message of a task as answers to what its run waits for."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import msgspec

from application.runs.resume_run import ClientToolResult
from domain.a2a.questions import Question, QuestionKind, asked_of
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError, Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from interfaces.http.a2a.schemas import PartBody

_YES = frozenset({"approve", "approved", "yes", "y", "ok", "okay", "allow", "accept", "done"})
_NO = frozenset({"deny", "denied", "no", "n", "reject", "decline", "cancel"})
_PATH = "message.parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a message settles."""

    results: tuple[ClientToolResult, ...]
    decisions: tuple[CallDecision, ...]


def answers_of(run: Run, parts: Sequence[PartBody]) -> Answers:
    """Parts of data answer the questions that they name by `id`; a text answers the only question.

    Raises INVALID `answer_invalid`."""
    questions = [asked_of(use) for use in run.pending]
    results: list[ClientToolResult] = []
    decisions: list[CallDecision] = []
    for question, given in _given(questions, parts):
        if question.kind is QuestionKind.APPROVAL:
            decisions.append(_decision(question, given))
        else:
            results.append(_result(question, given))
    return Answers(results=tuple(results), decisions=tuple(decisions))


def _given(questions: Sequence[Question], parts: Sequence[PartBody]) -> Iterator[tuple[Question, JsonObject]]:
    """Each answered question with the answer as data."""
    for part in parts:
        part.require_one(_PATH)
    found = [answer for part in parts if part.has_data for answer in _objects(part.data)]
    if found:
        for answer in found:
            yield _named(questions, answer), answer
        return
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    if not text:
        raise _wrong("must have a text, or data with the answers")
    if len(questions) != 1:
        raise _wrong(f"must answer by data: the task waits for {len(questions)} answers, each named by its id")
    yield questions[0], _of_text(questions[0], text)


def _objects(data: object) -> list[JsonObject]:
    given = data if isinstance(data, list) else [data]
    if not all(isinstance(answer, dict) for answer in given):
        raise _wrong("must have answers as JSON objects")
    return cast("list[JsonObject]", given)


def _named(questions: Sequence[Question], answer: JsonObject) -> Question:
    named = answer.get("id")
    if named is None and len(questions) == 1:
        return questions[0]
    for question in questions:
        if named in (question.id, question.use.id):
            return question
    raise _wrong("must name what the task waits for: " + ", ".join(question.id for question in questions))


def _of_text(question: Question, text: str) -> JsonObject:
    word = text.rstrip(".!").casefold()
    match question.kind:
        case QuestionKind.APPROVAL:
            if word in _YES or word in _NO:
                return {"approved": word in _YES}
            raise _wrong('must approve or deny the call: "approve", "deny", or data with `approved`')
        case QuestionKind.PAGE:
            return {"action": "cancel" if word in _NO else "accept"}
        case QuestionKind.FORM:
            return {"action": "accept", "content": _content(question, text)}
        case QuestionKind.RESULT:
            return {"result": text}


def _content(question: Question, text: str) -> JsonValue:
    """The content of a form: its only field, or an object as JSON."""
    form = (question.use.elicitation.schema if question.use.elicitation else None) or {}
    fields = form.get("properties")
    if isinstance(fields, dict) and len(fields) == 1:
        [(name, field)] = fields.items()
        is_text = isinstance(field, dict) and field.get("type", "string") == "string"
        return {name: text if is_text else _json(text)}
    return _json(text)


def _json(text: str) -> JsonValue:
    """The value of a text; the text itself where it is no JSON."""
    with suppress(msgspec.DecodeError):
        return cast(JsonValue, msgspec.json.decode(text))
    return text


def _decision(question: Question, answer: JsonObject) -> CallDecision:
    approved, arguments, reason = (answer.get(name) for name in ("approved", "arguments", "reason"))
    if not isinstance(approved, bool):
        raise _wrong(f"{question.id} needs `approved`: true or false")
    return CallDecision(
        tool_call_id=question.use.id,
        approve=approved,
        arguments=arguments if isinstance(arguments, dict) else None,
        reason=reason if isinstance(reason, str) else None,
    )


def _result(question: Question, answer: JsonObject) -> ClientToolResult:
    if question.kind is QuestionKind.RESULT:
        if "result" not in answer:
            raise _wrong(f"{question.id} needs `result`")
        failed = answer.get("isError") is True
        return ClientToolResult(tool_call_id=question.use.id, result=answer["result"], is_error=failed)
    told: JsonObject = {name: answer[name] for name in ("action", "content") if name in answer}
    asks = question.use.elicitation
    named: JsonObject = {} if asks is None else {"request_id": asks.request_id}
    return ClientToolResult(tool_call_id=question.use.id, result={**told, **named})


def _wrong(message: str) -> ServiceError:
    return invalid("answer_invalid", "The message does not answer the task.", Violation(path=_PATH, message=message))
