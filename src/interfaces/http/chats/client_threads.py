"""Threads by the ids that front ends give their chats, and the runs that answer there (ADR
0071)."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.resume_run import ClientToolResult, ResumeRun, ResumeRunCommand
from application.runs.start_run import StartRun, StartRunCommand
from application.system.pages import PageRequest
from application.threads.queries import GetThread
from domain.approvals.decision import CallDecision
from domain.errors import Violation, invalid, not_found
from domain.identity.api_key import Principal
from domain.ids import ThreadId
from domain.json_value import JsonObject, canonical_digest
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.threads.message import PriorMessage, ToolUse, UserContent
from domain.threads.message_json import tool_use_to_json
from domain.tools.client_tool import ClientTool
from interfaces.http.chats.shown import RunShown, Shown, asked_id
from interfaces.http.runs.answer import Answer
from interfaces.http.runs.provider_words import told_event
from interfaces.http.runs.stored_events import stored_events

_OURS = "thr_"


@dataclass(frozen=True, slots=True)
class ChatName:
    """The client's `id` of a chat, of one agent and protocol; or the id of a thread."""

    protocol: str
    agent: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessageCommand:
    """A message of the user.

    - `message_id` is the client's id of the message.
    - `inherit` is what the message is if the chat has a run: with what the newest one leaves to it.
    - `history` reads the messages before it, for a new thread. `branches` begins one also where the
      chat has a thread.
    """

    principal: Principal
    chat: ChatName
    message_id: str
    input: tuple[UserContent, ...]
    history: Callable[[], tuple[PriorMessage, ...]]
    branches: bool = False
    inherit: "Callable[[Run], Awaitable[ChatMessageCommand]] | None" = None
    instructions: str | None = None
    client_tools: tuple[ClientTool, ...] = ()
    client_request: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a client says about calls that its run waits for, by what they ask (`asked_id`); a
    decision also by its call. A violation is what is wrong with a decision. `request` is what the
    run's answers repeat of the request, if anything."""

    results: Mapping[str, ClientToolResult]
    decisions: Mapping[str, CallDecision | Violation]
    request: Callable[[Run], Awaitable[JsonObject | None]] | None = None

    def fitting(self, pending: Iterable[ToolUse]) -> tuple[tuple[ClientToolResult, ...], tuple[CallDecision, ...]]:
        """The results and the decisions that the calls ask for. Raises INVALID `body_invalid`."""
        uses = [(asked_id(tool_use_to_json(use)), use) for use in pending]
        results = [self.results.get(asked) for asked, use in uses if not use.approval]
        decisions = [self.decisions.get(asked, self.decisions.get(use.id)) for asked, use in uses if use.approval]
        if wrong := [fault for fault in decisions if isinstance(fault, Violation)]:
            raise invalid("body_invalid", "The request body is not valid.", *wrong)
        return tuple(filter(None, results)), tuple(given for given in decisions if isinstance(given, CallDecision))


class ClientThreads:
    """Rules:
    - A client's id names the thread of the newest run that the same key started with this id, over
      the same protocol and for the same agent. The id of a thread names that thread, as in `/v1`.
    - The newest message again is answered by the run that it started.
    - The run that waits or is executed comes before messages that are queued behind it.
    - A message continues the thread. It waits for a run that is not finished, and is refused while
      a person must decide.
    - An edited or repeated message begins a new thread with the messages before it. The id then
      names that one.
    - Results and decisions resume the run that waits for them. Given again, the answer after them
      is the same again.
    """

    def __init__(
        self,
        *,
        start_run: StartRun,
        resume_run: ResumeRun,
        cancel_run: CancelRun,
        get_run_events: GetRunEvents,
        list_runs: ListRuns,
        get_run: GetRun,
        get_thread: GetThread,
    ) -> None:
        self._start_run = start_run
        self._resume_run = resume_run
        self._cancel_run = cancel_run
        self._get_run_events = get_run_events
        self._list_runs = list_runs
        self._get_run = get_run
        self._get_thread = get_thread

    async def newest(self, principal: Principal, chat: ChatName) -> Run | None:
        """The run of the thread that waits, otherwise the newest. Raises NOT_FOUND for the id of a
        thread that there is not."""
        return await self._run_of(principal, chat, RunStatus.REQUIRES_ACTION)

    async def ask(self, command: ChatMessageCommand) -> Answer:
        """Raises as StartRun."""
        principal, chat = command.principal, command.chat
        key, thread_id, strategy = _key(principal, chat), None, MultitaskStrategy.ENQUEUE
        if not command.branches:
            thread_id, named = await self._named(principal, chat)
            if named is not None and named.history_key == key and _is_of(named, command):
                return Answer(run=named)
            if named is not None and command.inherit is not None:
                command = await command.inherit(named)
        if thread_id is not None:
            waiting = RunFilter(thread_id=thread_id, status=RunStatus.REQUIRES_ACTION)
            if await self._first(principal, waiting) is not None:
                strategy = MultitaskStrategy.REJECT
        started = await self._start_run.execute(
            StartRunCommand(
                principal=principal,
                agent=chat.agent,
                input=command.input,
                thread_id=thread_id,
                strategy=strategy,
                instructions=command.instructions,
                client_tools=command.client_tools,
                client_request={"message": command.message_id, **(command.client_request or {})},
                history=() if thread_id is not None else command.history(),
                history_key=key,
            )
        )
        return Answer(run=started.run)

    async def settle(self, principal: Principal, chat: ChatName, given: Settled) -> Answer:
        """Raises as ResumeRun, and INVALID `tool_call_not_pending`."""
        run = await self._existing(principal, chat)
        results, approvals = given.fitting(run.pending)
        if run.status is RunStatus.REQUIRES_ACTION and (approvals or results):
            command = ResumeRunCommand(
                principal=principal,
                run_id=run.id,
                tool_results=results,
                approvals=approvals,
                client_request=None if given.request is None else await given.request(run),
            )
            return Answer(run=await self._resume_run.execute(command), after_seq=run.last_seq)
        named = {*given.results, *given.decisions}
        stored = stored_events(self._get_run_events, principal, run.id)
        waits = [event.seq async for events in stored for event in events if _asks_for(event, named)]
        if not waits:
            wrong = Violation(path="messages", message="must settle calls that the run waits for")
            raise invalid("tool_call_not_pending", f"The run {run.id} does not wait for these calls.", wrong)
        return Answer(run=run, after_seq=waits[-1])

    async def pending(self, principal: Principal, shown: RunShown) -> tuple[Shown, ...]:
        """What has changed in a run that waits, since its last event. For operators, `shown` then
        has what the provider said about a failed run."""
        if shown.rest is not None:
            shown.rest = await told_event(self._get_run, principal, shown.rest)
        if shown.rest is None or shown.rest.type is not RunEventType.RUN_REQUIRES_ACTION:
            return ()
        run = await self._get_run.execute(principal, shown.run.id)
        if run.status is not RunStatus.REQUIRES_ACTION:
            return ()
        return tuple(shown.waits(map(tool_use_to_json, run.pending)))

    async def stop(self, principal: Principal, chat: ChatName) -> Run:
        """Cancel the run that blocks the thread, otherwise the newest. Raises NOT_FOUND,
        FORBIDDEN."""
        run = await self._existing(principal, chat)
        return await self._cancel_run.execute(CancelRunCommand(principal=principal, run_id=run.id))

    async def _existing(self, principal: Principal, chat: ChatName) -> Run:
        run = await self._run_of(principal, chat, RunStatus.REQUIRES_ACTION, RunStatus.IN_PROGRESS)
        if run is None:
            raise not_found("thread", chat.id)
        return run

    async def _run_of(self, principal: Principal, chat: ChatName, *first: RunStatus) -> Run | None:
        """The run with the first of these statuses that one has, otherwise the newest."""
        thread_id, _ = await self._named(principal, chat)
        if thread_id is None:
            return None
        for status in (*first, None):
            run = await self._first(principal, RunFilter(thread_id=thread_id, status=status))
            if run is not None:
                return run
        return None

    async def _named(self, principal: Principal, chat: ChatName) -> tuple[ThreadId | None, Run | None]:
        """The thread that an id names, if there is one, and the newest run of the name."""
        if chat.id.startswith(_OURS):
            thread_id = (await self._get_thread.execute(principal, ThreadId(chat.id))).id
            return thread_id, await self._first(principal, RunFilter(thread_id=thread_id))
        run = await self._first(principal, RunFilter(history_key=_key(principal, chat)))
        return None if run is None else run.thread_id, run

    async def _first(self, principal: Principal, wanted: RunFilter) -> Run | None:
        page = await self._list_runs.execute(principal, wanted, PageRequest(limit=1))
        return page.items[0] if page.items else None


def _key(principal: Principal, chat: ChatName) -> str:
    return canonical_digest(["chat", principal.key_id, chat.protocol, chat.agent, chat.id])


def _is_of(run: Run, command: ChatMessageCommand) -> bool:
    """Whether the message started the run."""
    return (run.client_request or {}).get("message") == command.message_id and run.input == command.input


def _asks_for(event: RunEvent, named: Collection[str]) -> bool:
    if event.type is not RunEventType.RUN_REQUIRES_ACTION:
        return False
    pending = event.data["pending"]
    calls = pending if isinstance(pending, list) else []
    return any(isinstance(call, dict) and (call["id"] in named or asked_id(call) in named) for call in calls)
