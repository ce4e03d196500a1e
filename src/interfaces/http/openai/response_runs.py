"""Starts, continues or resumes the run of a response (ADR 0065)."""

from application.agents.queries import GetAgent
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, ListRuns
from application.runs.start_run import StartRun, StartRunCommand
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.threads.queries import GetThread, ListMessages
from application.tools.list_tools import ListTools
from domain.agents.agent import Agent
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId, ThreadId
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.runs.run import Run, RunStatus
from domain.threads.message import PriorMessage, UserContent
from domain.threads.thread import thread_quarantined
from domain.tools.tool import Tool
from interfaces.http.openai.chat_messages import Conversation, conversation_of
from interfaces.http.openai.client_calls import ClientCalls
from interfaces.http.openai.content_parts import content_of
from interfaces.http.openai.errors import unsupported
from interfaces.http.openai.ids import call_id, is_client_call
from interfaces.http.openai.repeats import is_recent
from interfaces.http.openai.response_ids import Place, named, no_response, place_of, thread_of
from interfaces.http.openai.response_input import ReadInput, read_input
from interfaces.http.openai.response_items import approval_request_id
from interfaces.http.openai.response_schemas import ResponseBody

_TYPED = ("user", "system", "developer")
_TOOL_FIELDS = {
    "function": ("allowed_callers", "async", "defer_loading", "description", "output_schema", "parameters", "strict"),
    "mcp": (
        "allowed_callers",
        "allowed_tools",
        "authorization",
        "connector_id",
        "defer_loading",
        "headers",
        "require_approval",
        "server_description",
        "server_url",
        "tunnel_id",
    ),
}
"""What a response says of a tool for which its request does not state it: null."""


class ResponseRuns:
    """Rules:
    - Outputs of functions and answers to approvals resume the run that waits for all of them. Until
      it has all, nothing else is added to its thread. Where other people must approve, too, the
      answer is the response that waits.
    - A response after another one continues its thread. If the thread has moved on, a new thread
      begins with the messages up to that response, if it is the last one of a run that has ended.
    - A response of a conversation is a run on its thread. Any other one gets a new thread.
    - An `mcp` tool names a registered server of the agent; `allowed_tools` narrow its tools.
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
        get_thread: GetThread,
        list_messages: ListMessages,
        list_tools: ListTools,
        client_calls: ClientCalls,
        clock: Clock,
    ) -> None:
        self._start_run = start_run
        self._get_run = get_run
        self._list_runs = list_runs
        self._get_agent = get_agent
        self._get_thread = get_thread
        self._list_messages = list_messages
        self._list_tools = list_tools
        self._client_calls = client_calls
        self._clock = clock

    def new_id(self) -> RunId:
        """An id for the run of `begin`, to follow it from before its start."""
        return self._start_run.new_id()

    async def begin(
        self, principal: Principal, body: ResponseBody, *, is_repeated: bool, run_id: RunId | None = None
    ) -> tuple[Run, Place]:
        """`run_id` is the id of a run that is started. Raises as StartRun and ResumeRun, and
        INVALID for what the protocol has and Dragoman has not."""
        principal.require(Permission.RUNS_START)
        body.require_supported()
        given = read_input(body.input)
        if given.approvals or (given.messages and given.messages[-1].role == "tool"):
            return await self._resumed(principal, body, given)
        agent = await self._get_agent.execute(principal, body.model)
        key = canonical_digest(["responses", principal.key_id, agent.id, body.model_dump(mode="json")])
        if is_repeated:
            page = await self._list_runs.execute(principal, RunFilter(history_key=key), PageRequest(limit=1))
            if page.items and is_recent(page.items[0], self._clock):
                return page.items[0], Place(run_id=page.items[0].id)
        thread_id, history = await self._before(principal, body)
        continues = thread_id is not None or history is not None
        with given.located():
            said = conversation_of(given.messages)
            content = _of_the_user(said) if continues else said.input
            earlier = said.history() if history is None else history
        allowlist, listed = await self._mcp(principal, agent, body)
        command = StartRunCommand(
            principal=principal,
            agent=agent.id,
            input=content,
            thread_id=thread_id,
            limits=body.limits(),
            model_settings=body.model_settings(),
            output_schema=body.output_schema(),
            tool_allowlist=allowlist,
            metadata=body.metadata_of_run(),
            client_tools=body.client_tools(),
            instructions="\n\n".join(filter(None, (body.instructions, said.instructions))) or None,
            history=earlier,
            history_key=key,
            client_request=_request(body, listed),
            run_id=run_id,
        )
        run = (await self._start_run.execute(command)).run
        return run, Place(run_id=run.id)

    async def _resumed(self, principal: Principal, body: ResponseBody, given: ReadInput) -> tuple[Run, Place]:
        with given.located():
            results = conversation_of(given.messages).results if given.messages else {}
        decisions = {f"call_{answer.request_id.partition('_')[2]}": answer for answer in given.approvals}
        begun = await self._client_calls.settle(
            principal,
            results,
            {key: (answer.approve, answer.reason) for key, answer in decisions.items()},
            client_request={"background": body.background or False},
        )
        seqs = [event.seq for event in await self._client_calls.waits(principal, begun.run)]
        part = len([seq for seq in seqs if seq <= begun.after_seq])
        if part == len(seqs) and begun.run.status is RunStatus.REQUIRES_ACTION:
            if any(call_id(begun.run.id, use.id) not in {**results, **decisions} for use in begun.run.pending):
                _refuse_waiting(begun.run)
            part -= 1  # other people must approve, too: the same response, which still waits
        return begun.run, Place(run_id=begun.run.id, part=part)

    async def _before(
        self, principal: Principal, body: ResponseBody
    ) -> tuple[ThreadId | None, tuple[PriorMessage, ...] | None]:
        """The thread that the response continues, or the history of a new one."""
        conversation = body.conversation_id()
        if conversation is not None:
            with named("conversation", conversation):
                thread = await self._get_thread.execute(principal, thread_of(conversation))
            newest = await self._newest(principal, thread.id)
            if newest is not None:
                _refuse_waiting(newest)
            return thread.id, None
        if body.previous_response_id is None:
            return None, None
        place = place_of(body.previous_response_id)
        with named("response", body.previous_response_id):
            run = await self._get_run.execute(principal, place.run_id)
        if not is_stored(run):
            raise no_response(body.previous_response_id)
        _refuse_waiting(run)
        newest = await self._newest(principal, run.thread_id)
        if newest is not None and newest.id == run.id:
            return run.thread_id, None
        await self._require_branch(principal, run, place)
        return None, await self._messages_until(principal, run)

    async def _newest(self, principal: Principal, thread_id: ThreadId) -> Run | None:
        page = await self._list_runs.execute(principal, RunFilter(thread_id=thread_id), PageRequest(limit=1))
        return page.items[0] if page.items else None

    async def _require_branch(self, principal: Principal, run: Run, place: Place) -> None:
        """Messages of a thread in quarantine, and calls without results, come into no other
        thread."""
        thread = await self._get_thread.execute(principal, run.thread_id)
        if thread.quarantine is not None:
            raise thread_quarantined(thread.id, thread.quarantine.run_id)
        if not run.status.is_terminal or len(await self._client_calls.waits(principal, run)) != place.part:
            detail = f"{place.id} is not the last response of its run, or the run has not ended."
            raise conflict("response_not_last", detail)

    async def _messages_until(self, principal: Principal, run: Run) -> tuple[PriorMessage, ...]:
        """The messages of the thread up to the last one of the run."""
        found: list[PriorMessage] = []
        until, cursor = 0, None
        while True:
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self._list_messages.execute(principal, run.thread_id, request)
            for message in page.items:
                found.append(PriorMessage(role=message.role, content=message.content))
                until = len(found) if message.run_id == run.id else until
            cursor = page.next_cursor
            if cursor is None:
                return tuple(found[:until])

    async def _mcp(
        self, principal: Principal, agent: Agent, body: ResponseBody
    ) -> tuple[tuple[str, ...] | None, list[JsonValue]]:
        """The allowlist of the run, and the items that list the tools of the named servers. The
        list has patterns of all tools but those that `allowed_tools` leave out; None if they leave
        out nothing."""
        named = body.mcp_tools()
        for tool, path in named:
            if tool.server_label not in agent.config.mcp_servers:
                detail = (
                    f"The agent has no MCP server {tool.server_label!r}: it is registered and given to agents first."
                )
                raise unsupported(f"{path}.server_label", detail)
        if not named:
            return None, []
        allowed = {tool.server_label: tool.allowed_names() for tool, _ in named}
        offered: dict[str, list[Tool]] = {slug: [] for slug in allowed}
        for one in await self._list_tools.execute(principal, agent.id):
            if one.server is not None and one.server in allowed and _is_allowed(one.tool, allowed[one.server]):
                offered[one.server].append(one.tool)
        listed: list[JsonValue] = [_listed(slug, tools) for slug, tools in offered.items()]
        if all(names is None for names in allowed.values()):
            return None, listed
        patterns = [kind.value for kind in agent.config.tools] + [tool.name for tool in body.client_tools()]
        for slug in agent.config.mcp_servers:
            whole = allowed.get(slug) is None
            patterns += [f"mcp__{slug}__*"] if whole else [tool.name for tool in offered[slug]]
        return tuple(patterns), listed


def _of_the_user(said: Conversation) -> tuple[UserContent, ...]:
    """The content of input after an earlier response. Raises INVALID `unsupported_parameter`."""
    for index, message in said.messages:
        if message.role not in _TYPED:
            raise unsupported(f"messages.{index}.role", "Input after an earlier response is of the user.")
    return tuple(
        part for index, message in said.messages for part in content_of(message.content, f"messages.{index}.content")
    )


def is_stored(run: Run) -> bool:
    """Whether the response may be read again: `store` was not false."""
    return (run.client_request or {}).get("store") is not False


def _is_allowed(tool: Tool, names: frozenset[str] | None) -> bool:
    return names is None or (tool.mcp is not None and tool.mcp.tool_name in names)


def _listed(slug: str, tools: list[Tool]) -> JsonObject:
    """The item that lists the tools of a server."""
    shown: list[JsonValue] = [
        {
            "name": tool.mcp.tool_name,
            "description": tool.description,
            "input_schema": tool.parameters,
            "annotations": None,
        }
        for tool in tools
        if tool.mcp is not None
    ]
    item: JsonObject = {"id": f"mcpl_{slug}", "type": "mcp_list_tools"}
    return {**item, "server_label": slug, "tools": shown, "error": None}


def _refuse_waiting(run: Run) -> None:
    if run.status is not RunStatus.REQUIRES_ACTION:
        return
    use = run.pending[0]
    if is_client_call(use):
        detail = f"There is no output for the function call {call_id(run.id, use.id)}."
    elif use.elicitation is not None:
        detail = f"A question of a server waits for its answer: {use.name}."
    else:
        detail = f"There is no answer to the approval request {approval_request_id(run.id, use.id)}."
    raise invalid("tool_call_pending", detail, Violation(path="input", message="must settle what the response asks"))


def _request(body: ResponseBody, listed: list[JsonValue]) -> JsonObject:
    """What responses repeat from their request."""
    stated = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = ("model", "instructions", "previous_response_id", "background", "store", "tool_choice")
    kept: JsonObject = {name: stated[name] for name in names if name in stated}
    kept["tools"] = [{**dict.fromkeys(_TOOL_FIELDS[tool["type"]]), **tool} for tool in stated.get("tools", [])]
    text = stated.get("text", {})
    kept["text"] = {"format": {"type": "text"}, **text}
    if body.conversation is not None:
        kept["conversation"] = True
    if listed:
        kept["listed"] = listed
    return kept
