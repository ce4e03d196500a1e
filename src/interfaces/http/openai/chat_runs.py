"""Starts or continues the run that answers a chat completion (ADR 0065)."""

from dataclasses import replace

from application.agents.queries import GetAgent
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, ListRuns
from application.runs.start_run import StartRun, StartRunCommand
from application.system.pages import PageRequest
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId
from domain.json_value import JsonObject, canonical_digest
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from interfaces.http.openai.chat_messages import Conversation, Owner, conversation_of
from interfaces.http.openai.chat_schemas import ChatBody
from interfaces.http.openai.client_calls import ClientCalls
from interfaces.http.openai.ids import linked_run
from interfaces.http.openai.repeats import is_recent
from interfaces.http.runs.answer import Answer

_LOOKED_AT = 10
_ENDED = (RunStatus.COMPLETED, RunStatus.INCOMPLETE)


class ChatRuns:
    """Rules:
    - Results of tools resume the run that asked for them.
    - A conversation continues its thread: the run that gave the last answer of the history is found
      by the digest of the messages before that answer, for the same key, agent, instructions and
      person, and is the newest of its thread.
    - Any other history becomes a new thread with these messages.
    - While the last answer waits for a person, nothing starts: the answer is the same again.
    - A repeated request of a client's library is answered by the run that the first one started
      within minutes.
    """

    def __init__(
        self,
        *,
        start_run: StartRun,
        get_run: GetRun,
        list_runs: ListRuns,
        get_agent: GetAgent,
        client_calls: ClientCalls,
        clock: Clock,
    ) -> None:
        self._start_run = start_run
        self._get_run = get_run
        self._list_runs = list_runs
        self._get_agent = get_agent
        self._client_calls = client_calls
        self._clock = clock

    def new_id(self) -> RunId:
        """An id for the run of `begin`, to follow it from before its start."""
        return self._start_run.new_id()

    async def begin(
        self, principal: Principal, body: ChatBody, *, is_repeated: bool, run_id: RunId | None = None
    ) -> Answer:
        """`run_id` is the id of a run that is started. Raises as StartRun and ResumeRun, and
        INVALID for what the protocol has and Dragoman has not."""
        principal.require(Permission.RUNS_START)
        body.require_supported()
        conversation = conversation_of(body.messages)
        agent = await self._get_agent.execute(principal, body.model)
        if conversation.ends_with_results:
            return await self._client_calls.settle(principal, conversation.results)
        owner = (principal.key_id, agent.id, body.end_user())
        key = conversation.key(owner)
        request: JsonObject = {"body": canonical_digest(body.model_dump(mode="json")), "user": body.end_user()}
        if is_repeated:
            started = await self._with_key(principal, key)
            first = next((run for run in started if run.client_request == request), None)
            if first is not None and is_recent(first, self._clock):
                return Answer(run=first)
        last = await self._last(principal, conversation, owner)
        if last is not None and last.status is RunStatus.REQUIRES_ACTION:
            return Answer(run=last, after_seq=last.last_seq)
        command = StartRunCommand(
            principal=principal,
            agent=agent.id,
            input=conversation.input,
            model_settings=body.model_settings(),
            output_schema=body.output_schema(),
            metadata=body.metadata_of_run(),
            client_tools=body.client_tools(),
            instructions=conversation.instructions,
            history_key=key,
            client_request=request,
            run_id=run_id,
        )
        return Answer(run=await self._started(command, conversation, last))

    async def _started(self, command: StartRunCommand, conversation: Conversation, last: Run | None) -> Run:
        if last is not None:
            strategy = MultitaskStrategy.REJECT if last.status in _ENDED else MultitaskStrategy.ENQUEUE
            given = conversation.since(last.id) if linked_run(conversation.said) == last.id else command.input
            continued = replace(command, thread_id=last.thread_id, strategy=strategy, input=given)
            try:
                return (await self._start_run.execute(continued)).run
            except ServiceError as error:
                if error.code != "thread_busy":  # another branch of the conversation was quicker
                    raise
        return (await self._start_run.execute(replace(command, history=conversation.history()))).run

    async def _last(self, principal: Principal, conversation: Conversation, owner: Owner) -> Run | None:
        """The run that gave the last answer of the history, if the thread has not moved on
        since."""
        linked = linked_run(conversation.said)
        if linked is not None:
            found = await self._found(principal, linked)
            if found is not None and not _is_of(found, conversation, owner):
                return None
        else:
            earlier = conversation.earlier_key(owner)
            runs = () if earlier is None else await self._with_key(principal, earlier)
            found = next((run for run in runs if _gave(run, conversation.said)), None)
        if found is None:
            return None
        of_thread = RunFilter(thread_id=found.thread_id)
        newest = await self._list_runs.execute(principal, of_thread, PageRequest(limit=1))
        return found if newest.items and newest.items[0].id == found.id else None

    async def _found(self, principal: Principal, run_id: RunId) -> Run | None:
        try:
            return await self._get_run.execute(principal, run_id)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def _with_key(self, principal: Principal, key: str) -> tuple[Run, ...]:
        page = await self._list_runs.execute(principal, RunFilter(history_key=key), PageRequest(limit=_LOOKED_AT))
        return page.items


def _is_of(run: Run, conversation: Conversation, owner: Owner) -> bool:
    """Whether a run that a text links to is of this owner, and has these instructions or still
    waits."""
    of_run = (run.requested_by, run.agent_id, (run.client_request or {}).get("user"))
    waits = run.status is RunStatus.REQUIRES_ACTION
    return of_run == owner and (waits or run.instructions == conversation.instructions)


def _gave(run: Run, said: str) -> bool:
    """Whether a text in a history is the answer of the run. Clients show the texts of all its
    turns, and trim them."""
    output = (run.output or "").strip()
    return run.status in _ENDED and output != "" and said.strip().endswith(output)
