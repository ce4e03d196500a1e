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
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.runs.run import Run, RunStatus
from domain.threads.message import PriorMessage, UserContent
from interfaces.http.openai.chat_messages import conversation_of
from interfaces.http.openai.client_calls import ClientCalls
from interfaces.http.openai.content_parts import content_of
from interfaces.http.openai.errors import unsupported
from interfaces.http.openai.ids import call_id, is_client_call
from interfaces.http.openai.repeats import is_recent
from interfaces.http.openai.response_ids import Place, no_response, place_of, thread_of
from interfaces.http.openai.response_input import ReadInput, read_input
from interfaces.http.openai.response_items import approval_request_id
from interfaces.http.openai.response_schemas import McpTools, ResponseBody

_TYPED = ("user", "system", "developer")


class ResponseRuns:
    """Rules:
    - Outputs of functions and answers to approvals resume the run that waits for all of them.
    - A response after another one continues its thread. If the thread has moved on, a new thread begins with the
      messages up to that response.
    - A response of a conversation is a run on its thread. Any other one gets a new thread.
    - An `mcp` tool names a registered server of the agent; `allowed_tools` narrow its tools.
    - A repeated request of a client's library is answered by the run that the first one started within minutes.
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

    async def begin(self, principal: Principal, body: ResponseBody, *, is_repeated: bool) -> tuple[Run, Place]:
        """Raises as StartRun and ResumeRun, and INVALID for what the protocol has and Dragoman has not."""
        principal.require(Role.RUNNER)
        body.require_supported()
        given = read_input(body.input)
        if given.approvals or (given.messages and given.messages[-1].role == "tool"):
            return await self._resumed(principal, given)
        agent = await self._get_agent.execute(principal, body.model)
        key = canonical_digest(["responses", principal.key_id, agent.id, body.model_dump(mode="json")])
        if is_repeated:
            page = await self._list_runs.execute(principal, RunFilter(history_key=key), PageRequest(limit=1))
            if page.items and is_recent(page.items[0], self._clock):
                return page.items[0], Place(run_id=page.items[0].id)
        thread_id, history = await self._before(principal, body)
        said = conversation_of(given.messages)
        continues = thread_id is not None or history is not None
        if continues and any(message.role not in _TYPED for _, message in said.messages):
            raise unsupported("input", "Input after an earlier response is of the user.")
        content: tuple[UserContent, ...] = said.input
        if continues:
            content = tuple(
                part for index, message in said.messages for part in content_of(message.content, f"input.{index}")
            )
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
            history=said.history() if history is None else history,
            history_key=key,
            client_request=_request(body, listed),
        )
        run = (await self._start_run.execute(command)).run
        return run, Place(run_id=run.id)

    async def _resumed(self, principal: Principal, given: ReadInput) -> tuple[Run, Place]:
        results = conversation_of(given.messages).results if given.messages else {}
        decisions = {f"call_{answer.request_id.partition('_')[2]}": answer for answer in given.approvals}
        begun = await self._client_calls.settle(
            principal, results, {key: (answer.approve, answer.reason) for key, answer in decisions.items()}
        )
        part = await self._client_calls.parts_before(principal, begun)
        return begun.run, Place(run_id=begun.run.id, part=part)

    async def _before(
        self, principal: Principal, body: ResponseBody
    ) -> tuple[ThreadId | None, tuple[PriorMessage, ...] | None]:
        """The thread that the response continues, or the history of a new one."""
        conversation = body.conversation_id()
        if conversation is not None:
            return (await self._get_thread.execute(principal, thread_of(conversation))).id, None
        if body.previous_response_id is None:
            return None, None
        run = await self._get_run.execute(principal, place_of(body.previous_response_id).run_id)
        if not is_stored(run):
            raise no_response(body.previous_response_id)
        _refuse_waiting(run)
        newest = await self._list_runs.execute(principal, RunFilter(thread_id=run.thread_id), PageRequest(limit=1))
        if newest.items and newest.items[0].id == run.id:
            return run.thread_id, None
        return None, await self._messages_until(principal, run)

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
        """The allowlist of the run, and the items that list the tools of the named servers."""
        named = body.mcp_tools()
        for tool in named:
            if tool.server_label not in agent.config.mcp_servers:
                detail = (
                    f"The agent has no MCP server {tool.server_label!r}: it is registered and given to agents first."
                )
                raise unsupported("tools.server_label", detail)
        if not named:
            return None, []
        tools = await self._list_tools.execute(principal, agent.id)
        allowed = {tool.server_label: tool.allowed_tools for tool in named}
        listed: list[JsonValue] = []
        for tool in named:
            wanted = allowed[tool.server_label]
            shown: list[JsonValue] = [
                {
                    "name": one.tool.mcp.tool_name,
                    "description": one.tool.description,
                    "input_schema": one.tool.parameters,
                    "annotations": None,
                }
                for one in tools
                if one.server == tool.server_label
                and one.tool.mcp is not None
                and (wanted is None or one.tool.mcp.tool_name in wanted)
            ]
            item: JsonObject = {"id": f"mcpl_{tool.server_label}", "type": "mcp_list_tools"}
            listed.append({**item, "server_label": tool.server_label, "tools": shown, "error": None})
        return _allowlist(agent, body, named), listed


def is_stored(run: Run) -> bool:
    """Whether the response may be read again: `store` was not false."""
    return (run.client_request or {}).get("store") is not False


def _allowlist(agent: Agent, body: ResponseBody, named: tuple[McpTools, ...]) -> tuple[str, ...] | None:
    """Patterns of all tools but those that `allowed_tools` leave out; None if they leave out nothing."""
    if all(tool.allowed_tools is None for tool in named):
        return None
    allowed = {tool.server_label: tool.allowed_tools for tool in named}
    patterns = [kind.value for kind in agent.config.tools] + [tool.name for tool in body.client_tools()]
    for slug in agent.config.mcp_servers:
        names = allowed.get(slug)
        patterns += [f"mcp__{slug}__*"] if names is None else [f"mcp__{slug}__{name}" for name in names]
    return tuple(patterns)


def _refuse_waiting(run: Run) -> None:
    if run.status is not RunStatus.REQUIRES_ACTION:
        return
    use = run.pending[0]
    missing = (
        f"There is no output for the function call {call_id(run.id, use.id)}."
        if is_client_call(use)
        else f"There is no answer to the approval request {approval_request_id(run.id, use.id)}."
    )
    raise _missing(missing)


def _missing(detail: str) -> ServiceError:
    return invalid("tool_call_pending", detail, Violation(path="input", message="must settle what the response asks"))


def _request(body: ResponseBody, listed: list[JsonValue]) -> JsonObject:
    """What responses repeat from their request."""
    stated = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = ("model", "instructions", "previous_response_id", "background", "store", "tool_choice")
    kept: JsonObject = {name: stated[name] for name in names if name in stated}
    kept["tools"] = [
        {"parameters": None, "strict": None, **tool} if tool["type"] == "function" else tool
        for tool in stated.get("tools", [])
    ]
    text = stated.get("text", {})
    kept["text"] = {"format": {"type": "text"}, **text}
    if body.conversation is not None:
        kept["conversation"] = True
    if listed:
        kept["listed"] = listed
    return kept
