"""ReadGatewayContent: one resource, prompt or completion for an external client, under policy,
ledger and audit."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from application.gateway.calls.settle_lost_calls import due_at
from application.gateway.contents.content_names import ContentKind, exposed_uri, policy_name, with_exposed_uri
from application.gateway.contents.content_sources import ContentSources, Sources
from application.gateway.ports import GatewayLedger
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.gateway.tools.gateway_toolset import scope_of
from application.mcp.contents import ContentMethod, ContentRequest, McpContents
from application.mcp.ports import McpFailure, McpFailureKind
from application.policy.canary_guard import CanaryGuard
from application.system.ports import Clock, IdSource
from application.tools import failure_text
from application.tools.check_tool_call import CheckToolCall
from application.tools.result_text import TEXT_LIMIT_BYTES, cleaned, cut
from domain.errors import ErrorKind, ServiceError, existing, invalid
from domain.gateway.call import GatewayCall, GatewaySettlement, gateway_call_audit
from domain.gateway.session import GatewaySession, ToolNames
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.server import McpServer
from domain.policy.decision import Decision, decide_call
from domain.policy.rules import Verdict
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import McpBinding, Tool

_METHOD_NOT_FOUND = -32601
_CALLER_S_FAULTS = (-32602, -32002)
_ANSWERS = ("inputResponses", "requestState")
_NEEDS_APPROVAL = "This needs an approval, which cannot be requested here. It was not executed; continue without it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGatewayContentCommand:
    """`params` have the client's names. `accepts_input`: the client can answer forms and visit
    pages in between."""

    session: GatewaySession
    method: ContentMethod
    params: JsonObject
    accepts_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A request to one server under the server's names, with its ledger entry."""

    server: McpServer
    request: ContentRequest
    call: GatewayCall


class ReadGatewayContent:
    """Rules:
    - An unknown name is rejected.
    - For policy, ledger and audit, the request is a call of `mcp__SLUG__resources` or
      `mcp__SLUG__prompts` with the request's parameters as arguments. A request that requires
      approval is rejected.
    - A request is sent only after its intent is durable, and answered only after its outcome is.
    - A canary token in either direction ends the session and its run.
    - Completion is neither recorded nor audited, except with a canary token: it reveals no more
      than the prompt or resource.
    """

    def __init__(
        self,
        *,
        sources: ContentSources,
        contents: McpContents,
        check: CheckToolCall,
        ledger: GatewayLedger,
        halting: HaltGatewaySession,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._sources = sources
        self._contents = contents
        self._check = check
        self._ledger = ledger
        self._halting = halting
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ReadGatewayContentCommand) -> Mapping[str, object]:
        """The server's result with the client's names. Raises NOT_FOUND `resource_not_found`,
        `prompt_not_found`, INVALID `content_refused` in the server's words, FORBIDDEN
        `content_denied`, UNAVAILABLE `content_unavailable`, CONFLICT `gateway_session_halted`."""
        kind, name = _asked_for(command)
        sources = await self._sources.of(command.session, kind)
        by_name = self._sources.owner_of_prompt if kind is ContentKind.PROMPTS else self._sources.owner_of_uri
        owner = existing(await by_name(sources, name), "prompt" if kind is ContentKind.PROMPTS else "resource", name)
        server, own_name = owner
        read = self._read(command, sources, server, _with_name(command, own_name), kind)
        if command.method is ContentMethod.COMPLETE:
            return await self._completed(command.session, sources, read)
        decision = await self._allowed(command.session, sources, read)
        result = await self._asked(command.session, sources, read, decision)
        return _exposed_result(result, server, command.session)

    def _read(
        self,
        command: ReadGatewayContentCommand,
        sources: Sources,
        server: McpServer,
        params: JsonObject,
        kind: ContentKind,
    ) -> _Read:
        accepts_input = command.accepts_input and server.config.elicitation is ElicitationPolicy.ASK
        if not accepts_input:
            params = {key: value for key, value in params.items() if key not in _ANSWERS}
        session, now = command.session, self._clock.now()
        timeout_s = min(sources.tools.tool_timeout_s, server.config.timeout_s or sources.tools.tool_timeout_s)
        return _Read(
            server=server,
            request=ContentRequest(
                method=command.method, params=params, timeout_s=timeout_s, accepts_input=accepts_input
            ),
            call=GatewayCall(
                id=ToolCallId(self._ids.new("call")),
                session_id=session.id,
                organization_id=session.organization_id,
                name=policy_name(server.config.slug, kind),
                type=ToolType.MCP_TOOL,
                server_id=server.id,
                params=params,
                recorded_at=now,
                due_at=due_at(now, timeout_s),
            ),
        )

    async def _allowed(self, session: GatewaySession, sources: Sources, read: _Read) -> Decision | None:
        """Record the intent of an allowed request and return the policy decision."""
        call, tools = read.call, sources.tools
        tool = Tool(
            name=call.name,
            type=call.type,
            description="",
            parameters={"type": "object"},
            mcp=McpBinding(server_id=read.server.id, server_slug=read.server.config.slug, tool_name=call.name),
        )
        toolset = replace(tools.toolset, tools=(tool,), denied=())
        checked = self._check.recheck(call.name, call.params, toolset)
        found = tools.guard.arguments(call.params)
        if found is not None:
            kept = replace(call, params=tools.guard.without(call.params))
            refusal = self._settled(kept, ToolResult.blocked("run_halted", _HALTED))
            raise await self._halting.execute(session, refusal, checked.decision, found)
        if checked.answer is not None:
            await self._refuse(session, call, checked.answer, checked.decision)
        if checked.decision is not None and checked.decision.verdict is Verdict.REQUIRE_APPROVAL:
            await self._refuse(
                session, call, ToolResult.blocked("approval_required", _NEEDS_APPROVAL), checked.decision
            )
        policy = tools.toolset.policy_of(call.name)
        if not await self._ledger.intend(call, max_calls=policy.max_calls):
            reached = decide_call(policy, call.name, call.params, calls_so_far=policy.max_calls or 0)
            await self._refuse(session, call, failure_text.blocked_by_policy(reached), reached)
        return checked.decision

    async def _completed(self, session: GatewaySession, sources: Sources, read: _Read) -> Mapping[str, object]:
        """Execute a completion. The ledger gets an entry only if it ends the session."""
        guard = sources.tools.guard
        kept, leaked = ToolResult.blocked("run_halted", _HALTED), guard.arguments(read.call.params)
        if leaked is None:
            try:
                result = await self._ask(session, read)
            except ServiceError as error:
                kept, leaked = guard.result(ToolResult.failed("content_failed", error.detail))
                if leaked is None:
                    raise
            else:
                kept, leaked = _kept(guard, result)
                if leaked is None:
                    return result
        call = replace(read.call, params=guard.without(read.call.params))
        raise await self._halting.execute(session, self._settled(call, kept), None, leaked)

    async def _asked(
        self, session: GatewaySession, sources: Sources, read: _Read, decision: Decision | None
    ) -> Mapping[str, object]:
        began, guard = self._clock.monotonic(), sources.tools.guard
        try:
            result = await self._ask(session, read)
        except BaseException as error:  # also when its client has left
            said = ToolResult.failed("content_failed", error.detail if isinstance(error, ServiceError) else _UNKNOWN)
            said, leaked = guard.result(said)  # servers choose the texts of their refusals
            failed = self._settled(read.call, said, self._clock.monotonic() - began)
            if leaked is not None:
                raise await self._halting.execute(session, failed, decision, leaked) from None
            await asyncio.shield(self._ledger.settle(failed, gateway_call_audit(session, failed, decision=decision)))
            raise
        kept, leaked = _kept(guard, result)
        settlement = self._settled(read.call, kept, self._clock.monotonic() - began)
        if leaked is not None:
            raise await self._halting.execute(session, settlement, decision, leaked)
        await self._ledger.settle(settlement, gateway_call_audit(session, settlement, decision=decision))
        return result

    async def _ask(self, session: GatewaySession, read: _Read) -> Mapping[str, object]:
        try:
            result = await self._contents.ask(read.server, scope_of(session), read.request)
        except McpFailure as failure:
            raise _refusal(failure, read) from failure
        if result.get("resultType") == "input_required" and not (read.request.accepts_input and _asks_people(result)):
            raise ServiceError(
                "content_refused", ErrorKind.INVALID, "The server asks for input, which cannot be given here."
            )
        return result

    def _settled(self, call: GatewayCall, result: ToolResult, duration_s: float = 0.0) -> GatewaySettlement:
        return GatewaySettlement(call=call, result=result, duration_ms=round(duration_s * 1000), at=self._clock.now())

    async def _refuse(
        self, session: GatewaySession, call: GatewayCall, refusal: ToolResult, decision: Decision | None
    ) -> None:
        settlement = self._settled(call, refusal)
        await self._ledger.refuse(settlement, gateway_call_audit(session, settlement, decision=decision))
        raise ServiceError("content_denied", ErrorKind.FORBIDDEN, refusal.text)


_HALTED = "The session was halted before this was sent."
_UNKNOWN = "It was not finished; its outcome is unknown."


def _kept(guard: CanaryGuard, result: Mapping[str, object]) -> tuple[ToolResult, str | None]:
    """The ledger's form of a server's result, and the id of a canary token in it."""
    text = json.dumps(result, ensure_ascii=False)
    kept, leaked = guard.result(ToolResult.succeeded(cut(cleaned(text), TEXT_LIMIT_BYTES)))
    return kept, leaked or guard.arguments(cast(JsonObject, result))


def _asked_for(command: ReadGatewayContentCommand) -> tuple[ContentKind, str]:
    """The kind, and the client's name of the content. Raises INVALID `content_invalid`."""
    params = command.params
    ref = params.get("ref") if command.method is ContentMethod.COMPLETE else params
    if isinstance(ref, dict):
        of_prompt = command.method is ContentMethod.GET_PROMPT or ref.get("type") == "ref/prompt"
        name = ref.get("name" if of_prompt else "uri")
        if isinstance(name, str) and name:
            return (ContentKind.PROMPTS if of_prompt else ContentKind.RESOURCES), name
    raise invalid("content_invalid", "The parameters do not name a resource or prompt.")


def _with_name(command: ReadGatewayContentCommand, name: str) -> JsonObject:
    """The parameters with the server's own name, without hop-specific fields."""
    params = {key: value for key, value in command.params.items() if key != "_meta"}
    ref = params.get("ref")
    if command.method is ContentMethod.COMPLETE and isinstance(ref, dict):
        return {**params, "ref": {**ref, "name" if "name" in ref else "uri": name}}
    return {**params, "name" if command.method is ContentMethod.GET_PROMPT else "uri": name}


def _exposed_result(result: Mapping[str, object], server: McpServer, session: GatewaySession) -> Mapping[str, object]:
    """The result with the client's URIs in resources and prompt messages."""
    slug, contents, messages = server.config.slug, result.get("contents"), result.get("messages")
    if session.names is ToolNames.ORIGINAL:
        return result
    if isinstance(contents, list):
        shown = [
            {**one, "uri": exposed_uri(uri, slug)}
            if isinstance(one, dict) and isinstance(uri := one.get("uri"), str)
            else one
            for one in contents
        ]
        return {**result, "contents": shown}
    if isinstance(messages, list):
        said = [
            {**one, "content": with_exposed_uri(one.get("content"), slug)} if isinstance(one, dict) else one
            for one in messages
        ]
        return {**result, "messages": said}
    return result


def _asks_people(result: Mapping[str, object]) -> bool:
    """Whether the server asks only for elicitation. It may not ask for the client's models and
    files."""
    requests = result.get("inputRequests") or {}
    return isinstance(requests, dict) and all(
        isinstance(one, dict) and one.get("method") == "elicitation/create" for one in requests.values()
    )


def _refusal(failure: McpFailure, read: _Read) -> ServiceError:
    """A server's failure for the client, in the server's words if it is about the request."""
    said = failure_text.mcp_failure(failure, timeout_s=read.request.timeout_s, reference=read.call.id)
    if failure.kind is McpFailureKind.SERVER_ERROR:
        code = "content_not_found" if failure.rpc_code in (*_CALLER_S_FAULTS, _METHOD_NOT_FOUND) else "content_refused"
        return ServiceError(code, ErrorKind.INVALID, said.text)
    return ServiceError("content_unavailable", ErrorKind.UNAVAILABLE, said.text)
