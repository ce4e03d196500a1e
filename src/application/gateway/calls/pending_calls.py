"""PendingCalls: calls that wait for answers of a client that sends another request to any
process."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from application.gateway.calls.answer import GatewayAnswer, InputRequested
from application.gateway.calls.ask_client import Conversation, Question
from application.gateway.calls.client_answers import read_client_answer
from application.gateway.calls.request_states import RequestStates, state_invalid
from application.gateway.ports import GatewayNotes, call_topic, cancellation_topic
from application.policy.ports import SchemaValidator
from application.system.ports import Clock, IdSource
from application.system.wakeups import Subscription, Wakeups
from application.tools.ports import Box
from domain.errors import ErrorKind, ServiceError, invalid, is_storage_away
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.ids import GatewayNoteId, ToolCallId, derived_id
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.mcp.client_request import ClientRequest
from domain.tools.result import ToolResult, outcome_unknown

logger = logging.getLogger(__name__)

OUTCOME_KEPT_S = 300.0
"""How long the outcome of a call stays available after it ended without a waiting client."""
_REREAD_S = 5.0
_LOOK_S = 20.0
"""Rereads after this time in case a wake-up was lost: by the waiting request, and by the call
itself."""
_NOTHING_YET = ToolResult.succeeded("")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call of a client. `within_s` is its longest duration, without waiting for the client."""

    session: GatewaySession
    call_id: ToolCallId
    name: str
    arguments: JsonObject
    within_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuedCall:
    """The client's next request for a call: the `state` that it got, and answers by the requests'
    keys."""

    session: GatewaySession
    name: str
    arguments: JsonObject
    state: JsonObject
    responses: Mapping[str, JsonValue]


class PendingCalls:
    """Rules:
    - A call stays in the process that started it. The answer to its client's request carries the
      questions.
    - The client sends the answers to any process, and that process waits for the outcome.
    - A state is valid once, for the same tool with the same arguments.
    - Answers that do not fit are rejected and may be sent again. Missing answers are requested
      again.
    - A client that leaves during a call cancels it, in whichever process it is.
    - A call is lost with its process, and settled as lost.
    """

    def __init__(
        self,
        *,
        notes: GatewayNotes,
        states: RequestStates,
        wakeups: Wakeups,
        box: Box,
        schemas: SchemaValidator,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._notes = notes
        self._states = states
        self._wakeups = wakeups
        self._box = box
        self._schemas = schemas
        self._clock = clock
        self._ids = ids
        self._finishing: set[asyncio.Task[None]] = set()

    async def begin(
        self, pending: PendingCall, conversation: Conversation, making: Coroutine[None, None, GatewayAnswer]
    ) -> GatewayAnswer:
        """Execute the call until it has ended or asks its client. Raises what `making` raises."""
        task = asyncio.create_task(making, name="gateway-pending-call")
        announcing = asyncio.create_task(conversation.announced.get())
        try:
            await asyncio.wait({task, announcing}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            announcing.cancel()
        if task.done():
            return task.result()
        finishing = asyncio.create_task(self._finished(pending, task), name="gateway-pending-call-end")
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)
        return self._asked(pending, announcing.result())

    async def resume(self, again: ContinuedCall) -> GatewayAnswer:
        """Continue a call after its client answered. Raises INVALID `request_state_invalid`,
        `client_answer_invalid`, and what the call itself raises."""
        state, session = again.state, again.session
        if (state.get("name"), state.get("digest")) != (again.name, canonical_digest(again.arguments)):
            raise state_invalid()
        pending = PendingCall(
            session=session,
            call_id=ToolCallId(cast(str, state["call"])),
            name=again.name,
            arguments=again.arguments,
            within_s=cast(float, state["within_s"]),
        )
        asked = cast("dict[str, str]", state["asked"])
        async with self._wakeups.subscribe(call_topic(pending.call_id)) as woken:
            stored = await self._notes.of_call(session.organization_id, session.id, pending.call_id)
            if (outcome := _outcome_in(stored)) is not None:
                return await self._told(outcome)
            questions = {note.id: note for note in stored if note.kind is GatewayNoteKind.QUESTION}
            open_ids = {key: GatewayNoteId(note_id) for key, note_id in asked.items()}
            if any(note_id not in questions or questions[note_id].answer is not None for note_id in open_ids.values()):
                raise _over()
            if any(key not in again.responses for key in open_ids):
                return self._asked(
                    pending, [(note_id, self._request(questions[note_id])) for note_id in open_ids.values()]
                )
            answers = {
                note_id: self._sealed_answer(self._request(questions[note_id]), again.responses[key], key)
                for key, note_id in open_ids.items()
            }
            at = self._clock.now()
            if not await self._notes.answer(session.organization_id, session.id, answers, at=at):
                raise _over()
            self._wakeups.wake(call_topic(pending.call_id))
            try:
                return await self._next(pending, frozenset(answers), woken)
            except asyncio.CancelledError:
                await asyncio.shield(self._cancel(pending))
                raise

    async def _next(
        self, pending: PendingCall, answered: frozenset[GatewayNoteId], woken: Subscription
    ) -> GatewayAnswer:
        """The outcome of the call, or its next questions. After `within_s` the call is lost: its
        outcome is unknown."""
        session, now = pending.session, asyncio.get_running_loop().time
        until = now() + pending.within_s
        while True:
            stored = await self._notes.of_call(session.organization_id, session.id, pending.call_id)
            if (outcome := _outcome_in(stored)) is not None:
                return await self._told(outcome)
            further = [
                (note.id, self._request(note))
                for note in stored
                if note.kind is GatewayNoteKind.QUESTION and note.id not in answered and note.answer is None
            ]
            if further:
                return self._asked(pending, further)
            left_s = until - now()
            if left_s <= 0:
                return GatewayAnswer(result=outcome_unknown())
            await woken.wait(min(left_s, _REREAD_S))

    def _asked(self, pending: PendingCall, questions: "list[Question] | tuple[Question, ...]") -> GatewayAnswer:
        # Servers of older versions give their questions no keys.
        named = {request.key or note_id: (note_id, request) for note_id, request in questions}
        asked: JsonObject = {key: note_id for key, (note_id, _) in named.items()}
        state: JsonObject = {
            "call": pending.call_id,
            "name": pending.name,
            "digest": canonical_digest(pending.arguments),
            "within_s": pending.within_s,
            "asked": asked,
        }
        requests = tuple(
            ClientRequest(key=key, kind=request.kind, params=request.params) for key, (_, request) in named.items()
        )
        sealed = self._states.sealed(pending.session, state)
        return GatewayAnswer(result=_NOTHING_YET, asked=InputRequested(requests=requests, request_state=sealed))

    def _request(self, note: GatewayNote) -> ClientRequest:
        assert note.sealed is not None
        return ClientRequest.from_json(json.loads(self._box.decrypt(note.sealed)))

    def _sealed_answer(self, request: ClientRequest, response: JsonValue, key: str) -> bytes:
        answer = read_client_answer(request, response, schemas=self._schemas, path=f"inputResponses.{key}")
        return self._box.encrypt(json.dumps(answer.as_json()).encode())

    async def _told(self, outcome: GatewayNote) -> GatewayAnswer:
        """The outcome of the call; it is available once."""
        assert outcome.sealed is not None
        told = json.loads(self._box.decrypt(outcome.sealed))
        await self._notes.remove(outcome.organization_id, outcome.id)
        if (error := told.get("error")) is not None:
            raise ServiceError(error["code"], ErrorKind(error["kind"]), error["detail"], extra=error["extra"])
        return GatewayAnswer.from_json(told)

    async def _finished(self, pending: PendingCall, task: "asyncio.Task[GatewayAnswer]") -> None:
        try:
            await self._finish(pending, task)
        except ServiceError as error:
            # Storage is unavailable or the session is gone: the client's state is then rejected.
            extra = {"tool_call_id": pending.call_id, "error_code": error.code}
            logger.warning("cannot store the outcome of a gateway call for its client", extra=extra)
            await asyncio.wait({task})

    async def _finish(self, pending: PendingCall, task: "asyncio.Task[GatewayAnswer]") -> None:
        """Store the outcome for the client's next request, or cancel the call once its client has
        left."""
        session, cancellation = pending.session, _cancellation_id(pending)
        async with self._wakeups.subscribe(cancellation_topic(cancellation)) as woken:
            while not task.done():
                waking = asyncio.create_task(woken.wait(_LOOK_S))
                await asyncio.wait({task, waking}, return_when=asyncio.FIRST_COMPLETED)
                waking.cancel()
                if not task.done() and await self._is_taken_back(pending, cancellation):
                    task.cancel()
                    await asyncio.wait({task})
                    await self._notes.remove(session.organization_id, cancellation)
        if task.cancelled():
            return
        try:
            told = task.result().as_json()
        except ServiceError as error:
            extra: JsonObject = {**error.extra}
            told = {"error": {"code": error.code, "kind": error.kind.value, "detail": error.detail, "extra": extra}}
        except Exception:
            logger.exception("gateway call failed while its client was away", extra={"tool_call_id": pending.call_id})
            return
        await self._leave(pending, GatewayNoteKind.OUTCOME, GatewayNoteId(self._ids.new("gwn")), told)
        self._wakeups.wake(call_topic(pending.call_id))

    async def _is_taken_back(self, pending: PendingCall, cancellation: GatewayNoteId) -> bool:
        try:
            note = await self._notes.get(pending.session.organization_id, pending.session.id, cancellation)
        except ServiceError as error:
            if is_storage_away(error):
                return False  # read again later
            raise
        return note is not None

    async def _cancel(self, pending: PendingCall) -> None:
        cancellation = _cancellation_id(pending)
        await self._leave(pending, GatewayNoteKind.CANCELLATION, cancellation, None)
        self._wakeups.wake(cancellation_topic(cancellation))

    async def _leave(
        self, pending: PendingCall, kind: GatewayNoteKind, note_id: GatewayNoteId, told: JsonObject | None
    ) -> None:
        now = self._clock.now()
        note = GatewayNote(
            id=note_id,
            organization_id=pending.session.organization_id,
            session_id=pending.session.id,
            kind=kind,
            call_id=pending.call_id,
            sealed=None if told is None else self._box.encrypt(json.dumps(told).encode()),
            created_at=now,
            expires_at=now + timedelta(seconds=OUTCOME_KEPT_S),
        )
        await self._notes.leave(note)


def _outcome_in(notes: tuple[GatewayNote, ...]) -> GatewayNote | None:
    return next((note for note in notes if note.kind is GatewayNoteKind.OUTCOME), None)


def _cancellation_id(pending: PendingCall) -> GatewayNoteId:
    return GatewayNoteId(derived_id("gwn", pending.session.id, pending.call_id, "cancelled"))


def _over() -> ServiceError:
    return invalid("request_state_invalid", "params.requestState was used already, or has expired.")
