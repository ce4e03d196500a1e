"""AnswerGatewayQuestion: a client's answer to a question in the middle of its call. Any process
accepts it."""

import json
from dataclasses import dataclass

from application.gateway.calls.client_answers import read_client_answer
from application.gateway.ports import GatewayNotes, call_topic
from application.policy.ports import SchemaValidator
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.ports import Box
from application.tools.result_text import cleaned, cut
from domain.errors import ServiceError, not_found
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.json_value import JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest, unanswered

_MAX_REFUSAL_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGatewayQuestionCommand:
    """`refusal` is the reason why the client does not answer; otherwise `result` is the answer."""

    session: GatewaySession
    question_id: str
    result: JsonValue = None
    refusal: str | None = None


class AnswerGatewayQuestion:
    """Rules:
    - Only the session that was asked may answer, once, before the question expires.
    - An answer that does not fit is rejected, and the question is cancelled.
    """

    def __init__(
        self, *, notes: GatewayNotes, wakeups: Wakeups, box: Box, schemas: SchemaValidator, clock: Clock
    ) -> None:
        self._notes = notes
        self._wakeups = wakeups
        self._box = box
        self._schemas = schemas
        self._clock = clock

    async def execute(self, command: AnswerGatewayQuestionCommand) -> None:
        """Pass the answer to the waiting process. Raises NOT_FOUND `question_not_found`, INVALID
        `client_answer_invalid`."""
        session = command.session
        note = await self._notes.get(session.organization_id, session.id, command.question_id)
        if note is None or note.kind is not GatewayNoteKind.QUESTION or note.sealed is None:
            raise not_found("question", command.question_id)
        request = ClientRequest.from_json(json.loads(self._box.decrypt(note.sealed)))
        if command.refusal is not None:
            refusal = cut(cleaned(command.refusal), _MAX_REFUSAL_BYTES)
            await self._store(note, unanswered(request.kind, refusal, declined=True))
            return
        try:
            answer = read_client_answer(request, command.result, schemas=self._schemas, path="result")
        except ServiceError:
            await self._store(note, unanswered(request.kind, "The client's answer does not fit the question."))
            raise
        await self._store(note, answer)

    async def _store(self, note: GatewayNote, answer: ClientAnswer) -> None:
        sealed = self._box.encrypt(json.dumps(answer.as_json()).encode())
        at = self._clock.now()
        if not await self._notes.answer(note.organization_id, note.session_id, {note.id: sealed}, at=at):
            raise not_found("question", note.id)
        if note.call_id is not None:
            self._wakeups.wake(call_topic(note.call_id))
