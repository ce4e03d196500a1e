"""Tasks of A2A: runs of one agent, started, answered, read, cancelled and followed."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import cast

from litestar.types import Receive

from application.agents.queries import GetAgent
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunFilter, RunOutcome
from application.runs.queries import GetRun, GetRunEvents, ListChangedRuns
from application.runs.resume_run import ResumeRun, ResumeRunCommand
from application.runs.start_run import StartRun, StartRunCommand
from application.runs.watch_run import WatchRun
from application.system.pages import PageRequest
from domain.a2a.artifacts import OUTPUT_MODES, add_files
from domain.a2a.tasks import CONTEXT, TaskState, context_of, state_of, status_json, statuses_of, task_json
from domain.errors import Violation, invalid, not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId, ThreadId, derived_id
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.runs.run import Run, RunStatus
from domain.threads.attachments import MAX_ATTACHED_BYTES
from interfaces.http.a2a.answers import answers_of
from interfaces.http.a2a.errors import not_cancelable, unsupported
from interfaces.http.a2a.events import TaskUpdates
from interfaces.http.a2a.parts import content_of, history_of
from interfaces.http.a2a.pushes import A2aPushes
from interfaces.http.a2a.schemas import ListTasksBody, MessageBody, SendMessageBody, TaskBody
from interfaces.http.chats.client_threads import ChatMessageCommand, ChatName, ClientThreads
from interfaces.http.openai.leaving import unless_left
from interfaces.http.runs.provider_words import told_run
from interfaces.http.runs.stored_events import stored_events
from interfaces.http.stream_places import StreamPlace, StreamPlaces

_THREAD = "thr_"


class A2aTasks:
    """Rules:
    - A message without a task starts a run. The context names its thread: by the thread's id, or by
      an id of the client.
    - A message of a task answers what its run waits for; a run that does not wait takes none.
    - A stream begins with the task as it is, and misses and repeats no update after it. That of a
      message ends where the run waits or has ended, that of a subscription where it has ended.
    - Files that tools returned are artifacts, too, of the media types that the client takes.
    - A client that leaves harms nothing: the run continues.
    - Runs of other agents, and of other organizations, are not found.
    """

    def __init__(
        self,
        *,
        client_threads: ClientThreads,
        start_run: StartRun,
        resume_run: ResumeRun,
        cancel_run: CancelRun,
        watch_run: WatchRun,
        get_run: GetRun,
        get_run_events: GetRunEvents,
        get_agent: GetAgent,
        list_changed_runs: ListChangedRuns,
        pushes: A2aPushes,
        places: StreamPlaces,
    ) -> None:
        self._threads = client_threads
        self._start_run = start_run
        self._resume_run = resume_run
        self._cancel_run = cancel_run
        self._watch_run = watch_run
        self._get_run = get_run
        self._get_run_events = get_run_events
        self._get_agent = get_agent
        self._list_runs = list_changed_runs
        self._pushes = pushes
        self._places = places

    async def send(self, principal: Principal, agent: str, body: SendMessageBody, receive: Receive) -> JsonObject:
        """The task once it waits or has ended; at once if the client wants that, or leaves. Raises
        as StartRun and ResumeRun."""
        length = None if body.configuration is None else body.configuration.history_length
        run_id = self._start_run.new_id()
        async with self._watch_run.listening(run_id) as woken:
            begun = await self._begin(principal, agent, body, run_id)
            if body.configuration is not None and body.configuration.return_immediately:
                return {"task": task_json(told_run(principal, begun))}
            is_new = begun.id == run_id
            waiting = (
                self._watch_run.wait_for_new(principal, run_id, woken)
                if is_new
                else self._watch_run.wait(principal, begun.id)
            )
            outcome = await unless_left(receive, waiting)
        if outcome is None:
            return {"task": task_json(told_run(principal, begun))}
        return {"task": _task(principal, outcome, length)[0]}

    async def stream(
        self, principal: Principal, agent: str, body: SendMessageBody
    ) -> tuple[Run, StreamPlace, AsyncGenerator[JsonObject, None]]:
        """Raises as StartRun and ResumeRun."""
        with self._places.taken(principal) as place:
            begun = await self._begin(principal, agent, body, self._start_run.new_id())
        return begun, place, self._updates(principal, begun)

    async def subscribe(
        self, principal: Principal, agent: str, body: TaskBody
    ) -> tuple[Run, StreamPlace, AsyncGenerator[JsonObject, None]]:
        """Raises NOT_FOUND, CONFLICT `operation_unsupported` for a task that has ended."""
        run = await self.run_of(principal, agent, body.id)
        if run.status.is_terminal:
            raise unsupported(f"The task {run.id} has ended: get it instead.")
        return run, self._places.take(principal), self._updates(principal, run, to_the_end=True)

    async def get(self, principal: Principal, agent: str, body: TaskBody) -> JsonObject:
        """Raises NOT_FOUND."""
        await self.run_of(principal, agent, body.id)
        outcome = await self._watch_run.wait(principal, RunId(body.id), timeout_s=0)
        return _task(principal, outcome, body.history_length)[0]

    async def cancel(self, principal: Principal, agent: str, body: TaskBody) -> JsonObject:
        """The task once it has ended, or after a second. Raises NOT_FOUND, FORBIDDEN, CONFLICT
        `task_not_cancelable`."""
        run = await self.run_of(principal, agent, body.id)
        if run.status.is_terminal:
            raise not_cancelable(run.id)
        await self._cancel_run.execute(CancelRunCommand(principal=principal, run_id=run.id))
        return _task(principal, await self._watch_run.wait(principal, run.id, timeout_s=_STOPPING_S), 0)[0]

    async def list(self, principal: Principal, agent: str, body: ListTasksBody) -> JsonObject:
        """Raises NOT_FOUND, INVALID."""
        found = await self._list_runs.execute(
            principal,
            await self._wanted(principal, agent, body),
            PageRequest(limit=body.page_size, cursor=body.page_token or None),
        )
        kept = [run for run in found.page.items if _fits(run, body.status)]
        tasks: list[JsonValue] = []
        room = MAX_ATTACHED_BYTES
        for run in kept:
            if body.include_artifacts:
                outcome = await self._watch_run.wait(principal, run.id, timeout_s=0)
                task, room = _task(principal, outcome, body.history_length or 0, room)
            elif body.history_length:
                task = _told(principal, await self._watch_run.wait(principal, run.id, timeout_s=0), body.history_length)
            else:
                task = task_json(told_run(principal, run))
            if not body.include_artifacts:
                task.pop("artifacts", None)
            tasks.append(task)
        about: JsonObject = {"pageSize": body.page_size, "totalSize": found.total}
        return {"tasks": tasks, "nextPageToken": found.page.next_cursor or "", **about}

    async def _wanted(self, principal: Principal, agent: str, body: ListTasksBody) -> RunFilter:
        named = await self._get_agent.execute(principal, agent)
        wanted = RunFilter(agent_id=named.id, changed_since=_moment(body.status_timestamp_after))
        if isinstance(body.status, TaskState):
            wanted = replace(wanted, statuses=statuses_of(body.status))
        if not body.context_id:
            return wanted
        if body.context_id.startswith(_THREAD):
            return replace(wanted, thread_id=ThreadId(body.context_id))
        newest = await self._threads.newest(principal, _chat(agent, body.context_id))
        return replace(wanted, thread_id=ThreadId("") if newest is None else newest.thread_id)

    async def _begin(self, principal: Principal, agent: str, body: SendMessageBody, run_id: RunId) -> Run:
        principal.require(Permission.RUNS_START)
        push = None if body.configuration is None else body.configuration.task_push_notification_config
        if push is not None:
            await self._pushes.require_usable(principal, push, body.message.task_id)
        begun = await self._begun(principal, agent, body, run_id)
        if push is not None:
            await self._pushes.put(principal, begun.id, push)
        return begun

    async def _begun(self, principal: Principal, agent: str, body: SendMessageBody, run_id: RunId) -> Run:
        message, own = body.message, _request(body)
        if message.task_id:
            return await self._continued(principal, agent, message)
        content = content_of(message.parts)
        if not message.context_id:
            # The same message again is the same task. Clients that reuse an id for another message
            # get another task.
            said = canonical_digest(message.model_dump_json(exclude_unset=True))
            command = StartRunCommand(
                principal=principal,
                agent=agent,
                input=content,
                run_id=run_id,
                idempotency_key=derived_id("a2a", principal.key_id, agent, said),
                body_digest=said,
                client_request=own or None,
            )
            return (await self._start_run.execute(command)).run
        asked = await self._threads.ask(
            ChatMessageCommand(
                principal=principal,
                chat=_chat(agent, message.context_id),
                message_id=message.message_id,
                input=content,
                history=tuple,
                client_request=own,
            )
        )
        return asked.run

    async def _continued(self, principal: Principal, agent: str, message: MessageBody) -> Run:
        run = await self.run_of(principal, agent, message.task_id or "")
        if message.context_id and message.context_id not in (context_of(run), run.thread_id):
            wrong = Violation(path="message.contextId", message="is not the context of the task")
            raise invalid("body_invalid", "The request body is not valid.", wrong)
        if run.status is not RunStatus.REQUIRES_ACTION:
            state = "has ended" if run.status.is_terminal else "is not waiting for an answer"
            raise unsupported(f"The task {run.id} {state}. Send the message with its contextId and without taskId.")
        given = answers_of(run, message.parts)
        command = ResumeRunCommand(
            principal=principal, run_id=run.id, tool_results=given.results, approvals=given.decisions
        )
        return await self._resume_run.execute(command)

    async def run_of(self, principal: Principal, agent: str, task_id: str) -> Run:
        """A task of the agent. Raises NOT_FOUND."""
        named = await self._get_agent.execute(principal, agent)
        run = await self._get_run.execute(principal, RunId(task_id))
        if run.agent_id != named.id:
            raise not_found("run", task_id)
        return run

    async def _add_files(self, principal: Principal, updates: TaskUpdates, task: JsonObject) -> tuple[JsonObject, ...]:
        """The updates of files that the client does not have."""
        if not updates.has_files:
            return ()
        outcome = await self._watch_run.wait(principal, updates.run.id, timeout_s=0)
        return tuple(updates.files(add_files(task, updates.run, outcome.messages)[0]))

    async def _read(self, principal: Principal, run: Run) -> TaskUpdates:
        """The updates up to now."""
        updates = TaskUpdates(run=run)
        if run.attempt:
            async with aclosing(stored_events(self._get_run_events, principal, run.id)) as stored:
                async for batch in stored:
                    updates.read(event for event in batch if event.seq <= run.last_seq)
                    if batch and batch[-1].seq >= run.last_seq:
                        break
        return updates

    async def _updates(
        self, principal: Principal, run: Run, *, to_the_end: bool = False
    ) -> AsyncGenerator[JsonObject, None]:
        """The task with what its run has said so far, then what follows. `to_the_end` continues
        where the run waits."""
        updates, seq = await self._read(principal, run), run.last_seq
        first = updates.task(told_run(principal, run))
        await self._add_files(principal, updates, cast(JsonObject, first["task"]))
        yield first
        while True:
            following = self._watch_run.follow(principal, run.id, after_seq=seq, to_the_end=to_the_end)
            async with aclosing(following) as followed:
                async for batch in followed:
                    seq = batch[-1].seq
                    for update in updates.of(batch):
                        yield update
                    if to_the_end and updates.waits:
                        for update in await self._add_files(principal, updates, {}):
                            yield update
                        yield updates.status(status_json(await self._get_run.execute(principal, run.id)))
            now = await self._get_run.execute(principal, run.id)
            rests = now.status.is_terminal or now.status is RunStatus.REQUIRES_ACTION
            if rests and now.last_seq <= seq:
                files = await self._add_files(principal, updates, {})
                for update in (*files, *updates.rest(told_run(principal, now))):
                    yield update
                return


_STOPPING_S = 1.0


def _task(
    principal: Principal, outcome: RunOutcome, length: int | None, room: int = MAX_ATTACHED_BYTES
) -> tuple[JsonObject, int]:
    """The task with its newest messages and its files, and the bytes of files that are left."""
    task = _told(principal, outcome, length)
    return task, add_files(task, outcome.run, outcome.messages, room)[1]


def _told(principal: Principal, outcome: RunOutcome, length: int | None) -> JsonObject:
    """The task with its newest messages."""
    history = history_of(outcome.run, outcome.messages, length)
    return task_json(told_run(principal, outcome.run), history=history)


def _request(body: SendMessageBody) -> JsonObject:
    """What answers repeat of a request."""
    configuration, context = body.configuration, body.message.context_id
    own: JsonObject = {CONTEXT: context} if context and not context.startswith(_THREAD) else {}
    if configuration is not None and configuration.accepted_output_modes:
        own[OUTPUT_MODES] = [*configuration.accepted_output_modes]
    return own


def _chat(agent: str, context: str) -> ChatName:
    return ChatName("a2a", agent, context)


def _fits(run: Run, state: object) -> bool:
    """Runs that wait for people are in one of two states."""
    return not isinstance(state, TaskState) or state_of(run) is state


def _moment(text: str | None) -> datetime | None:
    """Raises INVALID `body_invalid`."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        wrong = Violation(path="statusTimestampAfter", message="must be a moment, such as 2026-01-01T12:00:00Z")
        raise invalid("body_invalid", "The request body is not valid.", wrong) from None
    return moment
