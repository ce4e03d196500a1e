"""Reads a message of a task as answers to what its run waits for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from application.runs.resume_run import ClientToolResult
from domain.a2a.questions import Question, QuestionKind, asked_of
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError, Violation, invalid
from domain.json_value import JsonObject
from domain.runs.run import Run
from interfaces.http.a2a.schemas import PartBody

_ACTIONS = frozenset({"accept", "decline", "cancel"})
_WORDS = {"done": "accept", "accept": "accept", "decline": "decline", "cancel": "cancel"}
_PATH = "message.parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a message settles."""

    results: tuple[ClientToolResult, ...]
    decisions: tuple[CallDecision, ...]


def answers_of(run: Run, parts: Sequence[PartBody]) -> Answers:
    """Parts of data answer the questions that they name by `id`, so that no repeated or late
    message answers another one. A text alone answers the only question, where that is a page or a
    result.

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
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    found = [answer for part in parts if part.has_data for answer in _objects(part.data)]
    if found and text:
        raise _wrong("must answer by data or by text, not by both")
    if found:
        for answer in found:
            yield _named(questions, answer), answer
        return
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
    for question in questions:
        if answer.get("id") == question.id:
            return question
    raise _wrong("must name by `id` what the task waits for: " + ", ".join(question.id for question in questions))


def _of_text(question: Question, text: str) -> JsonObject:
    match question.kind:
        case QuestionKind.APPROVAL:
            raise _wrong(f'must decide by data: {{"id": "{question.id}", "approved": true}}, or false')
        case QuestionKind.FORM:
            shape = f'{{"id": "{question.id}", "action": "accept", "content": {{...}}}}'
            raise _wrong(f"must fill the form by data: {shape}, or the action decline or cancel")
        case QuestionKind.PAGE:
            action = _WORDS.get(text.rstrip(".!").casefold())
            if action is None:
                raise _wrong('must say whether the page was visited: "done", "decline" or "cancel"')
            return {"action": action}
        case QuestionKind.RESULT:
            return {"result": text}


def _decision(question: Question, answer: JsonObject) -> CallDecision:
    approved, arguments, reason = (answer.get(name) for name in ("approved", "arguments", "reason"))
    if not isinstance(approved, bool):
        raise _wrong(f"{question.id} needs `approved`: true or false")
    if arguments is not None and not isinstance(arguments, dict):
        raise _wrong(f"{question.id} needs `arguments` as a JSON object")
    if reason is not None and not isinstance(reason, str):
        raise _wrong(f"{question.id} needs `reason` as text")
    return CallDecision(
        tool_call_id=question.use.id,
        approve=approved,
        arguments=arguments,
        reason=reason,
        approval_id=None if question.use.approval is None else question.use.approval.approval_id,
    )


def _result(question: Question, answer: JsonObject) -> ClientToolResult:
    if question.kind is QuestionKind.RESULT:
        if "result" not in answer:
            raise _wrong(f"{question.id} needs `result`")
        failed = answer.get("isError") is True
        return ClientToolResult(tool_call_id=question.use.id, result=answer["result"], is_error=failed)
    if answer.get("action") not in _ACTIONS:
        raise _wrong(f"{question.id} needs `action`: accept, decline or cancel")
    told: JsonObject = {name: answer[name] for name in ("action", "content") if name in answer}
    asks = question.use.elicitation
    named: JsonObject = {} if asks is None else {"request_id": asks.request_id}
    return ClientToolResult(tool_call_id=question.use.id, result={**told, **named})


def _wrong(message: str) -> ServiceError:
    return invalid("answer_invalid", "The message does not answer the task.", Violation(path=_PATH, message=message))
