"""Runs of AG-UI: a stream is a view of the events of one run."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import replace

from application.runs.queries import GetRunEvents
from application.runs.watch_run import WatchRun
from application.threads.queries import ListMessages
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run, RunStatus
from domain.runs.shared_state import SharedState
from domain.threads.message import Message
from domain.threads.message import Role as Speaker
from interfaces.http.ag_ui.events import AgUiEvents
from interfaces.http.ag_ui.messages import (
    INSTRUCTING,
    conversation,
    input_messages,
    instructing,
    instructions,
    message_views,
    settled,
)
from interfaces.http.ag_ui.schemas import RunAgentInputBody
from interfaces.http.chats.client_threads import ChatMessageCommand, ChatName, ClientThreads
from interfaces.http.chats.shown import ReplyDropped, RunShown
from interfaces.http.openai.errors import stream_error
from interfaces.http.runs.answer import Answer, run_location
from interfaces.http.runs.stored_events import stored_events
from interfaces.http.sse import EventStream, data_frame
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.threads.stored_messages import stored_messages


class AgUiRuns:
    """Rules:
    - The last message of the user starts a run on the client's thread. Answers to interrupts, and
      results of the client's tools, resume the run that waits for them.
    - A run is read again with the messages before it, then all its events. They replace what the
      client has.
    - A reply that was discarded is taken back by the messages as they are.
    - The state that the client sent is changed by calls of the agent, and by what the client sends
      with its answers. A client that sends none gets the one that the newest run of its thread has
      left. An answer to interrupts, and a reconnect, begin with the state as it is; an answer to
      some of what waits, with the one that came with it, which the client keeps and sends again.
    - A client that leaves harms nothing: the run continues. `stop` cancels it.
    """

    def __init__(
        self,
        *,
        client_threads: ClientThreads,
        watch_run: WatchRun,
        get_run_events: GetRunEvents,
        list_messages: ListMessages,
        places: StreamPlaces,
        heartbeat_s: float,
    ) -> None:
        self._threads = client_threads
        self._watch_run = watch_run
        self._get_run_events = get_run_events
        self._list_messages = list_messages
        self._places = places
        self._heartbeat_s = heartbeat_s

    async def run(self, principal: Principal, agent: str, body: RunAgentInputBody) -> EventStream:
        """Raises as StartRun and ResumeRun."""
        principal.require(Permission.RUNS_START)
        with self._places.taken(principal) as place:
            answer = await self._begin(principal, agent, body)
        events = _events(answer.run, body)
        frames = self._frames(principal, events, answer, body.own_state)
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=run_location(answer.run), place=place)

    async def connect(self, principal: Principal, agent: str, body: RunAgentInputBody) -> EventStream:
        """The messages of the thread and its newest run. Raises NOT_FOUND."""
        run = await self._threads.newest(principal, _chat(agent, body.thread_id))
        place = self._places.take(principal)
        if run is None:
            frames = _nothing(body)
        else:
            events = _events(run, body, repeats=True)
            frames = self._frames(principal, events, Answer(run=run))
        return EventStream(frames, heartbeat_s=self._heartbeat_s, place=place)

    async def stop(self, principal: Principal, agent: str, thread: str) -> None:
        """Raises NOT_FOUND, FORBIDDEN."""
        await self._threads.stop(principal, _chat(agent, thread))

    async def _begin(self, principal: Principal, agent: str, body: RunAgentInputBody) -> Answer:
        given = settled(body)
        if given is not None:

            async def request(run: Run) -> JsonObject | None:
                state = await self._read(principal, run, SharedState.of(run))
                changed = None not in (state.value, body.own_state) and body.own_state != state.value
                return {"state": body.own_state} if changed else None

            return await self._threads.settle(principal, _chat(agent, body.thread_id), replace(given, request=request))
        command = _command(principal, agent, body, body.own_state)

        async def inherit(former: Run) -> ChatMessageCommand:
            state = await self._read(principal, former, SharedState.of(former))
            return _command(principal, agent, body, state.value)

        return await self._threads.ask(command if body.own_state is not None else replace(command, inherit=inherit))

    async def _read(self, principal: Principal, run: Run, state: SharedState, *, resumed_after: int = 0) -> SharedState:
        """The state after the stored events; where the run was resumed after one of them, as it was
        then."""
        if state.value is not None:
            async with aclosing(stored_events(self._get_run_events, principal, run.id)) as pages:
                async for page in pages:
                    for event in page:
                        state.read(event)
                        if 0 < resumed_after < event.seq and event.type is RunEventType.RUN_RESUMED:
                            return state
        return state

    async def _frames(
        self, principal: Principal, events: AgUiEvents, answer: Answer, own_state: JsonValue = None
    ) -> AsyncGenerator[bytes, None]:
        """An error ends the stream as its last event."""
        run = answer.run
        shown = RunShown(run=run)
        try:
            if events.repeats or answer.after_seq:
                state = await self._read(principal, run, events.state, resumed_after=answer.after_seq)
                still_waits = run.status is RunStatus.REQUIRES_ACTION and state.read_to == run.last_seq
                if still_waits and None not in (own_state, state.value):
                    state.value = own_state  # it comes again with what resumes the run
            yield _framed(events.start())
            if events.repeats:
                yield _framed([await self._snapshot(principal, answer.run, events)])
            async with aclosing(self._watch_run.follow(principal, answer.run.id)) as followed:
                async for batch in followed:
                    told = [one for event in batch async for one in self._new(principal, shown, events, event, answer)]
                    if told:
                        yield _framed(told)
            changed = await self._threads.pending(principal, shown)
            yield _framed([*(one for item in changed for one in events.of(item)), *events.end(shown)])
        except Exception as error:  # noqa: BLE001 (logged, and told to the client)
            told_error = stream_error(answer.run.id, error)["error"]
            yield _framed([{"type": "RUN_ERROR", "message": told_error["message"], "code": told_error["code"]}])

    async def _new(
        self, principal: Principal, shown: RunShown, events: AgUiEvents, event: RunEvent, answer: Answer
    ) -> AsyncIterator[JsonObject]:
        """The events of AG-UI for one of the run. What the client has already is read, too, and
        left out."""
        for change in events.read(event):
            yield change
        for item in shown.of(event):
            if event.seq <= answer.after_seq:
                events.skip(item)
                continue
            for one in events.of(item):
                yield one
            if isinstance(item, ReplyDropped):
                yield await self._snapshot(principal, answer.run, events)

    async def _snapshot(self, principal: Principal, run: Run, events: AgUiEvents) -> JsonObject:
        """The messages of the system, and those of the thread to the input of the run, with those
        of the run whose events have been read: others follow as events, which the client would
        append."""
        before: list[Message] = []
        own: list[Message] = []
        async with aclosing(stored_messages(self._list_messages, principal, run.thread_id)) as stored:
            async for message in stored:
                if message.run_id == run.id:
                    own.append(message)
                elif own:
                    break
                else:
                    before.append(message)
        said = input_messages(run)
        told = [message for message in own if message.role is not Speaker.USER and message.id in events.completed]
        return {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [*events.instructing, *message_views([*before, *said, *told])],
        }


def _command(principal: Principal, agent: str, body: RunAgentInputBody, state: JsonValue) -> ChatMessageCommand:
    last = body.last()
    said = conversation([*(message for message in body.messages if message.role in INSTRUCTING), last])
    return ChatMessageCommand(
        principal=principal,
        chat=_chat(agent, body.thread_id),
        message_id=body.run_id,
        input=said.input,
        history=lambda: conversation(body.messages).history(),
        instructions=instructions(body, said, state),
        client_tools=body.client_tools(),
        client_request=None if state is None else {"state": state},
    )


def _chat(agent: str, thread: str) -> ChatName:
    return ChatName("ag-ui", agent, thread)


def _events(run: Run, body: RunAgentInputBody, *, repeats: bool = False) -> AgUiEvents:
    own = instructing(body.messages)
    return AgUiEvents(run=run, thread_id=body.thread_id, run_id=body.run_id, repeats=repeats, instructing=own)


async def _nothing(body: RunAgentInputBody) -> AsyncGenerator[bytes, None]:
    """A thread without a run."""
    about: JsonObject = {"threadId": body.thread_id, "runId": body.run_id}
    begun: JsonObject = {"type": "RUN_STARTED", **about, "protocolVersion": "1.0"}
    snapshot: JsonObject = {"type": "MESSAGES_SNAPSHOT", "messages": []}
    yield _framed([begun, snapshot, {"type": "RUN_FINISHED", **about, "outcome": {"type": "success"}}])


def _framed(events: Iterable[JsonObject]) -> bytes:
    return b"".join(map(data_frame, events))
