"""Executes one call of an MCP tool: binding, server, call, output schema; every failure becomes a value for the model."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from application.mcp.caller_relay import CallerRelay
from application.mcp.log_messages import LogTap
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpCatalogStore,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpInputRequired,
    McpReply,
    McpServerStore,
    ProgressCallback,
)
from application.mcp.server_catalogs import ServerCatalogs
from application.policy.ports import SchemaValidator
from application.tools import failure_text
from application.tools.ports import CapabilitiesMissing, InputAwaited
from application.tools.result_limits import limited_reply
from application.tools.result_text import reply_text
from domain.errors import ServiceError, is_storage_away
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientRequestKind
from domain.mcp.elicitation import MAX_ROUNDS, InputRound
from domain.mcp.pinning import DefinitionState
from domain.mcp.server import ElicitationPolicy, McpServer, OutputValidation
from domain.tools.result import ToolResult
from domain.tools.tool import McpBinding, Tool

logger = logging.getLogger(__name__)

_INVALID_PARAMS = -32602
_SLOW_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteMcpToolCommand:
    """`timeout_s` is what run and turn leave for the call; the server's own timeout narrows it. `meta` goes along to the
    server (trace context, idempotency key), and so does `input`, the answers to what it asked before;
    `known` are answers to use if it asks the same once more; `max_results` is how many of its results policy lets through.
    `relay` is asked what the server asks, while the call waits. `on_reply` is given the server's whole answer, unless policy
    leaves something out of it; `logs` is who hears what it logs meanwhile."""

    tool: Tool
    tool_call_id: ToolCallId
    arguments: JsonObject
    scope: ConnectionScope
    timeout_s: float
    meta: dict[str, str]
    on_progress: ProgressCallback | None = None
    input: InputRound | None = None
    known: InputRound | None = None
    max_results: int | None = None
    on_reply: Callable[[McpReply], None] | None = None
    logs: LogTap | None = None
    relay: CallerRelay | None = None


class ExecuteMcpTool:
    """Rules: the server comes from the tool's binding, never from the model; a tool that is in quarantine, or that is no
    longer what the run was given, is not called; the smallest timeout applies; what the server itself says of a failure reaches the model, what we say is a fixed sentence with a reference; structured content is
    held against the tool's output schema as the server's mode says; a server that asks for input gets it only where its
    policy says so, and at most ten times for one call."""

    def __init__(
        self,
        *,
        servers: McpServerStore,
        catalogs: McpCatalogStore,
        server_catalogs: ServerCatalogs,
        connections: McpConnections,
        schemas: SchemaValidator,
        switch: McpSwitch,
        slow_ms: int = _SLOW_MS,
    ) -> None:
        self._servers = servers
        self._catalogs = catalogs
        self._server_catalogs = server_catalogs
        self._connections = connections
        self._schemas = schemas
        self._switch = switch
        self._slow_s = slow_ms / 1000

    async def execute(self, command: ExecuteMcpToolCommand) -> ToolResult:
        """The outcome. Raises InputAwaited, CapabilitiesMissing, and UNAVAILABLE `storage_unavailable`: that is no outcome of the call."""
        binding = command.tool.mcp
        if binding is None:
            logger.error("MCP tool without a server", extra=_ids(command))
            return failure_text.missing_binding()
        about: dict[str, object] = {}
        began = time.perf_counter()
        timeout_s = min(command.timeout_s, binding.timeout_s or command.timeout_s)
        try:
            result = await self._call(command, binding, timeout_s)
        except McpFailure as failure:
            result = await self._failed(command, failure, timeout_s)
            about = {"failure": failure.kind.value, "rpc_code": failure.rpc_code, "stderr": failure.stderr[-500:]}
            if failure.kind is not McpFailureKind.SERVER_ERROR:  # a server's own words are results, which no log holds
                about["detail"] = failure.detail
        except InputAwaited:
            logger.debug("MCP tool asks for input", extra=_ids(command))
            raise
        except CapabilitiesMissing:
            logger.debug("MCP tool needs capabilities of its caller", extra=_ids(command))
            raise
        except Exception as error:
            if is_storage_away(error):
                raise
            logger.exception("MCP call failed unexpectedly", extra=_ids(command))
            result = failure_text.mcp_unexpected(command.tool_call_id)
        seconds = time.perf_counter() - began
        level = self._level(command, result, seconds)
        if logger.isEnabledFor(level):
            duration_ms = round(seconds * 1000, 2)
            outcome = {"status": result.outcome.value, "error_code": result.error_code, "duration_ms": duration_ms}
            logger.log(level, "MCP tool called", extra={**_ids(command), **about, **outcome})
        return result

    def _level(self, command: ExecuteMcpToolCommand, result: ToolResult, seconds: float) -> int:
        """One line for a call that failed, or was slow; the request's own line says the latter of calls through the gateway."""
        if result.is_error:
            return logging.WARNING
        is_slow = seconds >= self._slow_s and command.scope.gateway_session_id is None
        return logging.INFO if is_slow else logging.DEBUG

    async def _call(self, command: ExecuteMcpToolCommand, binding: McpBinding, timeout_s: float) -> ToolResult:
        server = await self._server(command.scope, binding)
        if server is None:
            return failure_text.unregistered_tool(command.tool.name)
        refusal = await self._refusal(command, binding)
        if refusal is not None:
            return refusal
        began = asyncio.get_running_loop().time()
        try:
            reply = await self._connections.call_tool(
                server, command.scope, _mcp_call(command, binding, server, timeout_s), command.on_progress
            )
        except McpFailure as failure:
            given = command.input
            if command.relay is not None:
                if failure.required is not None and (missing := command.relay.lacks(failure.required)):
                    raise CapabilitiesMissing(missing) from failure
                raise
            if failure.rpc_code != _INVALID_PARAMS or given is None or given.request_state is None:
                raise
            # It knows its own note no more (many forget it when they restart), and has not run the call.
            anew = replace(command, input=InputRound(number=given.number + 1, questions=()), known=given)
            return await self._call(anew, binding, timeout_s - (asyncio.get_running_loop().time() - began))
        if reply.input_required is not None:
            left_s = timeout_s - (asyncio.get_running_loop().time() - began)
            if command.relay is not None:
                return await self._relayed(command, command.relay, binding, reply.input_required, left_s)
            if reply.input_required.ended and not command.tool.repeatable:
                question = reply.input_required.questions[0].message
                return failure_text.input_undeliverable(question, reply_text(reply)[0])
            return await self._asked(command, binding, server, reply.input_required, left_s)
        return self._result(command, binding, server, reply)

    def _result(
        self, command: ExecuteMcpToolCommand, binding: McpBinding, server: McpServer, reply: McpReply
    ) -> ToolResult:
        """What a finished call comes to."""
        text, images = reply_text(reply)
        if not reply.is_error:
            violations = self._output_violations(server, binding, reply)
            if violations:
                return failure_text.output_schema_violated(violations)
        if command.on_reply is not None and command.max_results is None:
            command.on_reply(reply)
        if reply.is_error:
            return failure_text.server_said_error(text)
        if command.max_results is not None:
            text, images = reply_text(limited_reply(reply, command.max_results))
        return ToolResult.succeeded(text, images)

    async def _refusal(self, command: ExecuteMcpToolCommand, binding: McpBinding) -> ToolResult | None:
        """Why the tool is not called as things stand: it is gone, in quarantine, or another than the run was given."""
        if binding.definition is None or binding.inline is not None:
            return None  # what a workflow run's own server lists is approved with it; connections hold it to that
        organization_id = command.scope.organization_id
        stored = await self._catalogs.tool(organization_id, binding.server_id, binding.tool_name)
        if stored is None:
            return failure_text.unregistered_tool(command.tool.name)
        if stored.state is DefinitionState.QUARANTINED:
            return failure_text.quarantined_tool(command.tool.name)
        if stored.definition.digest != binding.definition.digest:
            return failure_text.changed_tool(command.tool.name)
        return None

    async def _failed(self, command: ExecuteMcpToolCommand, failure: McpFailure, timeout_s: float) -> ToolResult:
        if failure.kind is not McpFailureKind.DEFINITION_CHANGED:
            return failure_text.mcp_failure(failure, timeout_s=timeout_s, reference=command.tool_call_id)
        binding = command.tool.mcp
        server = None if binding is None else await self._servers.get(command.scope.organization_id, binding.server_id)
        if server is not None:
            # What the server did not announce is news to the catalog as well.
            try:
                await self._server_catalogs.relist(server, command.scope, timeout_s=timeout_s)
            except McpFailure:
                logger.warning("changed MCP tools could not be listed", extra={"server_id": server.id})
        return failure_text.changed_tool(command.tool.name)

    async def _asked(
        self,
        command: ExecuteMcpToolCommand,
        binding: McpBinding,
        server: McpServer,
        asked: McpInputRequired,
        left_s: float,
    ) -> ToolResult:
        """Wait for the answers, or tell the model why nobody does. A server that asks for nothing but to be called again is,
        while there is time."""
        before = command.input
        awaited = InputRound(
            number=1 if before is None else before.number + 1,
            questions=asked.questions,
            # A call that is made anew is asked everything anew.
            answers=before.answers if before is not None and asked.ended else _known_answers(command.known, asked),
            request_state=asked.request_state,
        )
        if awaited.number > MAX_ROUNDS:
            return failure_text.asked_too_often(MAX_ROUNDS)
        if asked.unsupported:
            return failure_text.input_unsupported(asked.unsupported)
        if awaited.current is None:
            if left_s <= 0:
                raise McpFailure(McpFailureKind.TIMEOUT, "The server did not finish in time.")
            return await self._call(replace(command, input=awaited, known=None), binding, left_s)
        if server.config.elicitation is ElicitationPolicy.DECLINE:
            return failure_text.input_declined(awaited.current.message)
        if any(question.schema and self._schemas.problem_with(question.schema) for question in awaited.questions):
            raise McpFailure(McpFailureKind.INVALID_REPLY, "The server asked with a form that cannot be used.")
        raise InputAwaited(awaited)

    async def _relayed(
        self,
        command: ExecuteMcpToolCommand,
        relay: CallerRelay,
        binding: McpBinding,
        asked: McpInputRequired,
        left_s: float,
    ) -> ToolResult:
        """Ask whoever made the call, and send it again with the answers. A form may come back without any; for what else is
        refused the protocol has no answer."""
        number = 1 if command.input is None else command.input.number + 1
        unknown = tuple(method for method in asked.unsupported if method not in list(ClientRequestKind))
        if number > MAX_ROUNDS:
            return failure_text.asked_too_often(MAX_ROUNDS)
        if unknown:
            return failure_text.input_unsupported(unknown)
        answers = await relay.ask(asked.requests) if asked.requests else {}
        given = {key: answer.result for key, answer in answers.items() if answer.result is not None}
        if len(given) < len(asked.requests):
            refused = (request.kind.value for request in asked.requests if request.key not in given)
            return failure_text.input_unsupported(tuple(refused))
        if left_s <= 0:
            raise McpFailure(McpFailureKind.TIMEOUT, "The server did not finish in time.")
        again = InputRound(number=number, questions=(), answers=given, request_state=asked.request_state)
        return await self._call(replace(command, input=again), binding, left_s)

    async def _server(self, scope: ConnectionScope, binding: McpBinding) -> McpServer | None:
        if not await self._switch.is_on(scope.organization_id):
            raise McpFailure(McpFailureKind.DISABLED, "MCP is switched off.")
        server = binding.inline or await self._servers.get(scope.organization_id, binding.server_id)
        if server is not None and not server.config.enabled:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "The MCP server was disabled.")
        if server is not None and server.lacks_installation:
            raise McpFailure(McpFailureKind.NOT_INSTALLED, "MCP server not installed.")
        return server

    def _output_violations(self, server: McpServer, binding: McpBinding, reply: McpReply) -> tuple[str, ...]:
        mode = server.config.output_validation
        if binding.output_schema is None or mode is OutputValidation.OFF:
            return ()
        if reply.structured is None:
            violations: tuple[str, ...] = ("structuredContent is missing",)
        else:
            try:
                violations = self._schemas.violations(binding.output_schema, reply.structured)
            except ServiceError as error:
                violations = (f"the output schema cannot be used ({error.code})",)
        if violations and mode is OutputValidation.WARN:
            logger.warning(
                "MCP result does not fit the output schema",
                # Their words quote the result, which no log holds.
                extra={"server_id": server.id, "tool": binding.tool_name, "violations": len(violations)},
            )
            return ()
        return violations


def _ids(command: ExecuteMcpToolCommand) -> dict[str, object]:
    """What the log tells a call by."""
    return {
        "organization_id": command.scope.organization_id,
        "thread_id": command.scope.thread_id,
        "run_id": command.scope.run_id,
        "gateway_session_id": command.scope.gateway_session_id,
        "tool_call_id": command.tool_call_id,
        "tool": command.tool.name,
        "server_id": None if command.tool.mcp is None else command.tool.mcp.server_id,
    }


def _mcp_call(command: ExecuteMcpToolCommand, binding: McpBinding, server: McpServer, timeout_s: float) -> McpCall:
    return McpCall(
        tool_name=binding.tool_name,
        arguments=command.arguments,
        timeout_s=timeout_s,
        output_schema=binding.output_schema,
        definition=binding.definition,
        meta=command.meta or None,
        accepts_input=server.config.elicitation is ElicitationPolicy.ASK,
        input_responses=None if command.input is None else command.input.answers or None,
        request_state=None if command.input is None else command.input.request_state,
        logs=command.logs,
        relay=command.relay,
    )


def _known_answers(known: InputRound | None, asked: McpInputRequired) -> dict[str, JsonObject]:
    if known is None:
        return {}
    return {
        question.request_id: known.answers[question.request_id]
        for question in asked.questions
        if question in known.questions and question.request_id in known.answers
    }
