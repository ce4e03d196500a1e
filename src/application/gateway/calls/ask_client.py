"""AskClient: passes a server's questions in the middle of a call to the client of the call."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from application.gateway.ports import GatewayNotes, call_topic
from application.policy.canary_guard import CanaryGuard
from application.policy.ports import SchemaValidator
from application.system.deadline import Deadline
from application.system.ports import Clock, IdSource
from application.system.wakeups import Subscription, Wakeups
from application.tools.ports import Box
from domain.gateway.call import GatewayCall
from domain.gateway.note import GatewayNote, GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.ids import GatewayNoteId, GatewaySessionId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind, unanswered
from domain.mcp.elicitation import Elicitation, ElicitationAction
from domain.tools.tool import Tool

_REREAD_S = 5.0
"""Rereads after this time in case a wake-up was lost."""
_NOT_ASKED = "The client cannot be asked for this."
_GONE = "The client did not answer."

Question = tuple[GatewayNoteId, ClientRequest]
"""A question, with the id that its answer carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskableClient:
    """The client of a call.

    - `id` identifies it in its session; clients without a handshake have none.
    - `capabilities`: what the client declares that it can be asked for, in the protocol's form.
    - `ask` sends questions to a client that has an open request; `take_back` withdraws those that
      need no answer. After `left` is set, the client does not answer.
    - Without `ask`, the answer to the client's request carries the questions, and the client
      sends another request.
    """

    capabilities: JsonObject
    ask: Callable[[tuple[Question, ...]], Awaitable[None]] | None = None
    take_back: Callable[[tuple[GatewayNoteId, ...]], Awaitable[None]] | None = None
    left: asyncio.Event = field(default_factory=asyncio.Event)
    id: str = ""

    @property
    def takes_urls(self) -> bool:
        """Whether it can be asked to have a page visited."""
        able = self.capabilities.get(ClientRequestKind.ELICITATION.capability)
        return isinstance(able, dict) and "url" in able


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """How many seconds to wait for a client's answer, and how many calls of one session may wait
    for it in one process."""

    answer_s: float = 600.0
    most_waiting: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClient:
    """Rules:
    - A server may ask only for what its settings allow and the client declares.
    - Questions and answers are searched for canary tokens. With a token they are not passed on.
    - Each question is a row; the client may answer at any process. The row is removed once the
      question is answered, abandoned or expired.
    - Without an answer, or when too many calls of the session wait, the server gets a cancelled or
      declined answer.
    - The audit entry of the call says how each question ended, without its content.
    """

    notes: GatewayNotes
    wakeups: Wakeups
    box: Box
    schemas: SchemaValidator
    clock: Clock
    ids: IdSource
    limits: AnswerLimits
    waiting: Counter[GatewaySessionId] = field(default_factory=Counter, init=False)

    def about(
        self,
        session: GatewaySession,
        call: GatewayCall,
        tool: Tool | None,
        client: AskableClient | None,
        *,
        guard: CanaryGuard,
        call_s: float,
    ) -> "Conversation | None":
        """The conversation for one call, which takes at most `call_s` apart from waiting for the
        client. None if the client is not to be asked for anything."""
        if client is None or tool is None or tool.mcp is None:
            return None
        if not tool.mcp.asks and not (tool.mcp.own_accounts and client.takes_urls):
            return None
        return Conversation(self, session, call, tool.mcp.asks, client, guard=guard, call_s=call_s)


class Conversation:
    """The port `CallerRelay` for one call.

    - `asked`: how each question ended. `missing`: capabilities that the server requires and the
      client lacks.
    - `announced`: questions that the answer to the client's request carries.
    - `deadline`: the call's deadline. It is suspended while the client is asked.
    """

    def __init__(
        self,
        parts: AskClient,
        session: GatewaySession,
        call: GatewayCall,
        allowed: frozenset[ClientRequestKind],
        client: AskableClient,
        *,
        guard: CanaryGuard,
        call_s: float,
    ) -> None:
        self._parts = parts
        self._session = session
        self._call = call
        self._client = client
        self._guard = guard
        self._call_s = call_s
        self._allowed = {kind.capability for kind in allowed}
        self._able = {
            name: value
            for name, value in client.capabilities.items()
            if name in self._allowed and isinstance(value, dict)
        }
        self.asked: list[JsonValue] = []
        self.missing: JsonObject = {}
        self.announced: asyncio.Queue[tuple[Question, ...]] = asyncio.Queue()
        self.deadline: Deadline | None = None
        self._open = 0
        self._left_s = 0.0

    @property
    def caller(self) -> str:
        """The session and the client in it; without an id of the client, several programs may share
        the session's token, and only calls are told apart."""
        return f"{self._session.id} {self._client.id or self._call.id}"

    @property
    def capabilities(self) -> JsonObject:
        """Capabilities that the client has and the server may use."""
        return cast(JsonObject, self._able)

    def lacks(self, required: JsonObject) -> JsonObject:
        """Required capabilities that the server may use and the client lacks."""
        return {name: value for name, value in required.items() if name in self._allowed and name not in self._able}

    async def ask(self, requests: tuple[ClientRequest, ...]) -> Mapping[str, ClientAnswer]:
        """Ask the client, and wait for all answers."""
        answers: dict[str, ClientAnswer] = {}
        askable = tuple(request for request in requests if self._can_ask(request))
        waiting = self._parts.waiting[self._session.id]
        if (
            askable
            and waiting < self._parts.limits.most_waiting
            and not self._leaks({"asked": [request.as_json() for request in askable]})
        ):
            answers = await self._answers(askable)
            if self._leaks({"answered": {key: answer.as_json() for key, answer in answers.items()}}):
                answers = {}
        for request in requests:
            is_asked = request.key in answers
            answer = answers.setdefault(
                request.key, unanswered(request.kind, _NOT_ASKED, declined=request not in askable)
            )
            word = answer.word if is_asked else "not_asked"
            self.asked.append({"kind": request.kind.capability, "answer": word})
        return answers

    async def connect(self, question: Elicitation, topic: str, is_connected: Callable[[], Awaitable[bool]]) -> bool:
        """Have the client show a page where its person connects an account, and wait for `topic`,
        which says that it is connected; `is_connected` reads it, in case the signal was lost. False
        if the client cannot be asked or declines, or the person does not connect it in time."""
        parts, url = self._parts, question.url
        if url is None or not url.startswith("http") or not self._client.takes_urls:
            return False
        if parts.waiting[self._session.id] >= parts.limits.most_waiting:
            return False
        params: JsonObject = {"mode": "url", "message": question.message, "url": url}
        request = ClientRequest(key=question.request_id, kind=ClientRequestKind.ELICITATION, params=params)
        async with parts.wakeups.subscribe(topic) as connected:
            answer = (await self._answers((request,)))[request.key]
            self.asked.append({"kind": request.kind.capability, "answer": answer.word})
            if answer.word != ElicitationAction.ACCEPT:
                return False
            with self._counted(), self._waiting():
                return await self._told(connected, is_connected)

    async def _told(self, connected: Subscription, is_connected: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it was signalled or read before the time limit, and before the client left."""
        now = self._parts.clock.now()
        until = min(now + timedelta(seconds=self._parts.limits.answer_s), self._session.expires_at)
        while (left_s := (until - self._parts.clock.now()).total_seconds()) > 0 and not self._client.left.is_set():
            if await is_connected() or await self._signalled(connected, left_s):
                return True
        return False

    def _can_ask(self, request: ClientRequest) -> bool:
        able = self._able.get(request.kind.capability)
        if not isinstance(able, dict):
            return False
        if request.kind is ClientRequestKind.ELICITATION and "url" in request.params:
            return "url" in able
        if request.kind is ClientRequestKind.ELICITATION:
            # A request without a mode asks for a form.
            schema = cast(JsonObject, request.params["requestedSchema"])
            return ("form" in able or "url" not in able) and self._parts.schemas.problem_with(schema) is None
        return "tools" not in request.params or "tools" in able

    def _leaks(self, said: JsonObject) -> bool:
        self._guard.progress(self._call.id, said)
        return self._guard.seen(self._call.id) is not None

    async def _answers(self, requests: tuple[ClientRequest, ...]) -> dict[str, ClientAnswer]:
        parts, call = self._parts, self._call
        now = parts.clock.now()
        until = min(now + timedelta(seconds=parts.limits.answer_s), self._session.expires_at)
        notes = [self._note(request, now, until) for request in requests]
        ids = tuple(note.id for note in notes)
        questions = tuple(zip(ids, requests, strict=True))
        with self._counted(), self._waiting():
            async with parts.wakeups.subscribe(call_topic(call.id)) as woken:
                await parts.notes.leave(*notes, due_at=until + timedelta(seconds=self._call_s))
                given: dict[GatewayNoteId, bytes] = {}
                try:
                    if self._client.ask is None:
                        self.announced.put_nowait(questions)
                    else:
                        await self._client.ask(questions)
                    given = await self._given(ids, woken, until)
                finally:
                    await asyncio.shield(self._forget(ids, given))
        return {
            request.key: self._opened(given[note_id]) if note_id in given else unanswered(request.kind, _GONE)
            for note_id, request in questions
        }

    def _note(self, request: ClientRequest, now: datetime, until: datetime) -> GatewayNote:
        return GatewayNote(
            id=GatewayNoteId(self._parts.ids.new("gwn")),
            organization_id=self._session.organization_id,
            session_id=self._session.id,
            kind=GatewayNoteKind.QUESTION,
            call_id=self._call.id,
            sealed=self._parts.box.encrypt(json.dumps(request.as_json()).encode()),
            created_at=now,
            expires_at=until,
        )

    async def _given(
        self, ids: tuple[GatewayNoteId, ...], woken: Subscription, until: datetime
    ) -> dict[GatewayNoteId, bytes]:
        """Stored answers: all, or those present at the time limit or when the client leaves."""
        parts, session = self._parts, self._session
        while True:
            stored = await parts.notes.of_call(session.organization_id, session.id, self._call.id)
            given = {note.id: note.answer for note in stored if note.id in ids and note.answer is not None}
            left_s = (until - parts.clock.now()).total_seconds()
            if len(given) == len(ids) or left_s <= 0 or self._client.left.is_set():
                return given
            await self._signalled(woken, left_s)

    async def _signalled(self, woken: Subscription, left_s: float) -> bool:
        """Wait for the signal, for some seconds at most, or until the client leaves. Whether it
        came."""
        waking = asyncio.create_task(woken.wait(min(left_s, _REREAD_S)))
        leaving = asyncio.create_task(self._client.left.wait())
        try:
            await asyncio.wait({waking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return waking.done() and waking.result()
        finally:
            waking.cancel()
            leaving.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({waking, leaving})

    async def _forget(self, ids: tuple[GatewayNoteId, ...], given: Mapping[GatewayNoteId, bytes]) -> None:
        await self._parts.notes.remove(self._session.organization_id, *ids)
        unused = tuple(note_id for note_id in ids if note_id not in given)
        if unused and self._client.take_back is not None:
            await self._client.take_back(unused)

    def _opened(self, sealed: bytes) -> ClientAnswer:
        return ClientAnswer.from_json(json.loads(self._parts.box.decrypt(sealed)))

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count this call among those that wait for the session's clients."""
        waiting, session_id = self._parts.waiting, self._session.id
        waiting[session_id] += 1
        try:
            yield
        finally:
            waiting[session_id] -= 1
            if not waiting[session_id]:
                del waiting[session_id]

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Suspend the deadline of the call."""
        loop, deadline = asyncio.get_running_loop(), self.deadline
        if deadline is not None and not self._open and (when := deadline.when()) is not None:
            self._left_s = when - loop.time()
            deadline.reschedule(None)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if deadline is not None and deadline is self.deadline and not self._open:
                deadline.reschedule(loop.time() + self._left_s)
