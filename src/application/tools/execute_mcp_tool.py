"""Executes one call of an MCP tool. Every failure becomes a value for the model."""

import asyncio
import logging
import time

from application.mcp.caller_relay import CallerRelay
from application.mcp.catalog_updater import CatalogUpdater
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
)
from application.policy.ports import SchemaValidator
from application.system.turns import Turn
from application.tools import failure_text
from application.tools.ask_for_account import AskForAccount, CallWithoutAccount, without_account
from application.tools.call_context import ASKS_META, KEEPS_STATE_META, ToolCallContext
from application.tools.ports import CapabilitiesMissing, InputAwaited
from application.tools.result_limits import limited_reply
from application.tools.result_text import reply_result
from domain.errors import ServiceError, is_storage_away
from domain.json_value import JsonObject
from domain.mcp.behavior import ElicitationPolicy, OutputValidation
from domain.mcp.client_request import ClientRequestKind
from domain.mcp.elicitation import MAX_ROUNDS, InputRound
from domain.mcp.kinds import kind_refusal
from domain.mcp.pinning import DefinitionState, pinned_tool
from domain.mcp.server import McpServer, McpServerKind
from domain.tools.result import ToolResult
from domain.tools.tool import McpBinding, Tool

logger = logging.getLogger(__name__)

_INVALID_PARAMS = -32602
_SLOW_MS = 1_000
_NOT_SENT = frozenset({McpFailureKind.NOT_CONNECTED, McpFailureKind.BUSY})
_BEGUN = "The agent cannot be reached now. It has the message and works on its task: do not send it again."


class ExecuteMcpTool:
    """Rules:
    - The server comes from the tool's binding, never from the model.
    - A tool that the server's `tools` leave out by now is unknown, as if the server was removed.
    - A tool in quarantine, or with a definition that differs from the run's, is not called.
    - The smallest timeout applies.
    - The model reads the server's own error text; for other failures, a fixed sentence with a
      reference.
    - Structured content is validated against the output schema, in the validation mode of the
      server.
    - A call without an outcome after `slow_ms` is logged while it waits.
    - A server receives requested input only if its policy allows it, at most ten times per call.
    - A call of a remote agent that has its message already never fails as one that was not sent.
    - An interrupted call of a remote agent stops the agent unless the call is continued elsewhere.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        catalogs: McpCatalogStore,
        catalog_updater: CatalogUpdater,
        connections: McpConnections,
        schemas: SchemaValidator,
        switch: McpSwitch,
        accounts: AskForAccount,
        slow_ms: int = _SLOW_MS,
    ) -> None:
        self._servers = servers
        self._catalogs = catalogs
        self._catalog_updater = catalog_updater
        self._connections = connections
        self._schemas = schemas
        self._switch = switch
        self._accounts = accounts
        self._slow_s = slow_ms / 1000

    async def execute(self, tool: Tool, arguments: JsonObject, context: ToolCallContext) -> ToolResult:
        """The outcome. Raises InputAwaited, CapabilitiesMissing, and UNAVAILABLE
        `storage_unavailable`: that is no outcome of the call."""
        binding = tool.mcp
        if binding is None:
            logger.error("MCP tool without a server", extra=_ids(tool, context))
            return failure_text.missing_binding()
        about: dict[str, object] = {}
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("MCP tool call started", extra=_ids(tool, context))
        unanswered = asyncio.get_running_loop().call_later(self._slow_s, _log_unanswered, tool, context)
        began = time.perf_counter()
        timeout_s = min(context.timeout_s, binding.timeout_s or context.timeout_s)
        try:
            result = await self._call(tool, binding, arguments, context, timeout_s)
        except McpFailure as failure:
            result = await self._failed(tool, binding, context, failure, timeout_s)
            about = {"failure": failure.kind.value, "rpc_code": failure.rpc_code, "stderr": failure.stderr[-500:]}
            if (
                failure.kind is not McpFailureKind.SERVER_ERROR
            ):  # the error text of a server is a result, and results are not logged
                about["detail"] = failure.detail
        except CallWithoutAccount as refused:
            result = refused.result
        except (InputAwaited, CapabilitiesMissing):
            logger.debug("MCP tool asks for input, or needs capabilities of its caller", extra=_ids(tool, context))
            raise
        except Exception as error:
            if is_storage_away(error):
                raise
            logger.exception("MCP call failed unexpectedly", extra=_ids(tool, context))
            result = failure_text.mcp_unexpected(context.tool_call_id)
        finally:
            unanswered.cancel()
        seconds = time.perf_counter() - began
        level = self._level(context, result, seconds)
        if logger.isEnabledFor(level):
            duration_ms = round(seconds * 1000, 2)
            outcome = {"status": result.outcome.value, "error_code": result.error_code, "duration_ms": duration_ms}
            logger.log(level, "MCP tool called", extra={**_ids(tool, context), **about, **outcome})
        return result

    def _level(self, context: ToolCallContext, result: ToolResult, seconds: float) -> int:
        """Failed calls and slow calls are logged. Slow calls of the gateway are not: the request
        log has them."""
        if result.is_error:
            return logging.WARNING
        is_slow = seconds >= self._slow_s and context.scope.gateway_session_id is None
        return logging.INFO if is_slow else logging.DEBUG

    async def _call(
        self, tool: Tool, binding: McpBinding, arguments: JsonObject, context: ToolCallContext, timeout_s: float
    ) -> ToolResult:
        """Send the call, and send it again with answers while its server requests input."""
        given, known, left_s, now = without_account(context.input), None, timeout_s, asyncio.get_running_loop().time
        while True:
            server = await self._server(context.scope, binding)
            if server is None:
                return failure_text.unregistered_tool(tool.name)
            refusal = await self._refusal(tool, binding, context.scope)
            if refusal is not None:
                return refusal
            call = _mcp_call(server, binding, arguments, context, given=given, timeout_s=left_s)
            began = now()
            try:
                reply = await self._connections.call_tool(server, context.scope, call, context.on_progress)
            except McpFailure as failure:
                left_s -= now() - began  # the wait for an account does not count
                given, known = await self._again(failure, server, context, given), given
                continue
            left_s -= now() - began  # the wait for answers does not count towards the timeout
            asked = reply.input_required
            if asked is None:
                return await self._result(context, binding, server, reply)
            if context.relay is not None:
                again = await _relayed(context.relay, asked, given)
            elif asked.ended and not tool.repeatable:
                return failure_text.input_undeliverable(asked.questions[0].message, reply_result(reply).text)
            else:
                again = self._asked(server, asked, given, known, keeps_state=binding.continues and context.keeps_state)
            if isinstance(again, ToolResult):
                return again
            if left_s <= 0:
                raise McpFailure(McpFailureKind.TIMEOUT, "The server did not finish in time.")
            given, known = again, None

    async def _again(
        self, failure: McpFailure, server: McpServer, context: ToolCallContext, given: InputRound | None
    ) -> InputRound | None:
        """What a failed call is sent again with. Raises: the failure, InputAwaited,
        CapabilitiesMissing, CallWithoutAccount."""
        if await self._accounts.connected(failure, server, context, given):
            return given
        return _without_state(failure, context.relay, given)

    async def _result(
        self, context: ToolCallContext, binding: McpBinding, server: McpServer, reply: McpReply
    ) -> ToolResult:
        """Validate the reply and convert it, with rests between, since both take milliseconds for
        large values."""
        if reply.is_error:
            if context.on_reply is not None and context.max_results is None:
                context.on_reply(reply)
            return failure_text.server_said_error(reply_result(reply).text)
        turn = Turn()
        violations = self._output_violations(server, binding, reply)
        await turn.rest()
        if violations:
            return failure_text.output_schema_violated(violations)
        if context.max_results is not None:
            reply = limited_reply(reply, context.max_results)
        elif context.on_reply is not None:
            context.on_reply(reply)
        result = reply_result(reply)
        await turn.rest()
        return result

    async def _refusal(self, tool: Tool, binding: McpBinding, scope: ConnectionScope) -> ToolResult | None:
        """The reason not to call the tool: removed, in quarantine, or changed since the run
        began."""
        if binding.definition is None or binding.inline is not None:
            return None  # approved with the workflow run; the connection checks the definition
        catalog = await self._catalogs.load(scope.organization_id, binding.server_id)
        stored = None if catalog is None else pinned_tool(catalog, binding.tool_name)
        if stored is None:
            return failure_text.unregistered_tool(tool.name)
        if stored.state is not DefinitionState.APPROVED:
            return failure_text.quarantined_tool(tool.name)
        if not stored.definition.is_same_as(binding.definition):
            return failure_text.changed_tool(tool.name)
        return None

    async def _failed(
        self, tool: Tool, binding: McpBinding, context: ToolCallContext, failure: McpFailure, timeout_s: float
    ) -> ToolResult:
        given = context.input
        if binding.continues and given is not None and given.request_state is not None and failure.kind in _NOT_SENT:
            failure = McpFailure(McpFailureKind.CONNECTION_LOST, failure.detail, for_model=_BEGUN)
        if failure.kind is not McpFailureKind.DEFINITION_CHANGED:
            return failure_text.mcp_failure(failure, timeout_s=timeout_s, reference=context.tool_call_id)
        server = await self._servers.get(context.scope.organization_id, binding.server_id)
        if server is not None:
            # The server did not report the change, so the stored catalog is outdated.
            try:
                await self._catalog_updater.relist(server, context.scope, timeout_s=timeout_s)
            except McpFailure:
                logger.warning("listing changed MCP tools failed", extra={"server_id": server.id})
        return failure_text.changed_tool(tool.name)

    def _asked(
        self,
        server: McpServer,
        asked: McpInputRequired,
        before: InputRound | None,
        known: InputRound | None,
        *,
        keeps_state: bool,
    ) -> InputRound | ToolResult:
        """The next round for a server that only wants a repetition, or the result if the input is
        not available. Raises: InputAwaited for questions to a person, and for a round that is to be
        stored."""
        awaited = InputRound(
            number=1 if before is None else before.number + 1,
            questions=asked.questions,
            # A call that starts from the beginning is asked all its questions again.
            answers=before.answers if before is not None and asked.ended else _known_answers(known, asked),
            request_state=asked.request_state,
        )
        if awaited.number > MAX_ROUNDS:
            return failure_text.asked_too_often(MAX_ROUNDS)
        if asked.unsupported:
            return failure_text.input_unsupported(asked.unsupported)
        if awaited.current is None and not keeps_state:
            return awaited
        if awaited.current is None:
            raise InputAwaited(awaited)
        if server.config.elicitation is ElicitationPolicy.DECLINE:
            return failure_text.input_declined(awaited.current.message)
        if any(question.schema and self._schemas.problem_with(question.schema) for question in awaited.questions):
            raise McpFailure(McpFailureKind.INVALID_REPLY, "The server asked with a form that cannot be used.")
        raise InputAwaited(awaited)

    async def _server(self, scope: ConnectionScope, binding: McpBinding) -> McpServer | None:
        """None if it was removed, or offers the tool no longer. The switch is read last, so that
        its kinds are those of now."""
        server = binding.inline or await self._servers.get(scope.organization_id, binding.server_id)
        kinds = await self._switch.permitted(scope.organization_id)
        if kinds is None:
            raise McpFailure(McpFailureKind.DISABLED, "MCP is disabled.")
        if server is not None and not server.config.enabled:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "The MCP server was disabled.")
        if server is not None and not kinds.permit(server.config):
            raise McpFailure(McpFailureKind.DISABLED, kind_refusal(server.config))
        if server is not None and server.lacks_installation:
            raise McpFailure(McpFailureKind.NOT_INSTALLED, "MCP server not installed.")
        return server if server is not None and server.config.offers(binding.tool_name) else None

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
                # Violations quote the result, and results are not logged.
                extra={"server_id": server.id, "tool": binding.tool_name, "violations": len(violations)},
            )
            return ()
        return violations


def _without_state(failure: McpFailure, relay: CallerRelay | None, given: InputRound | None) -> InputRound:
    """A round that restarts the call after the server rejected its `request_state` (many lose it in
    a restart). Raises: the failure in all other cases, or CapabilitiesMissing."""
    if relay is not None and failure.required is not None and (missing := relay.lacks(failure.required)):
        raise CapabilitiesMissing(missing) from failure
    if relay is not None or failure.rpc_code != _INVALID_PARAMS or given is None or given.request_state is None:
        raise failure
    return InputRound(number=given.number + 1, questions=())


async def _relayed(relay: CallerRelay, asked: McpInputRequired, before: InputRound | None) -> InputRound | ToolResult:
    """Pass the server's requests to the caller; returns a round with the answers. Only refused
    forms have an answer in the protocol."""
    number = 1 if before is None else before.number + 1
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
    return InputRound(number=number, questions=(), answers=given, request_state=asked.request_state)


def _log_unanswered(tool: Tool, context: ToolCallContext) -> None:
    logger.info("MCP tool call unanswered", extra={**_ids(tool, context), "timeout_s": context.timeout_s})


def _ids(tool: Tool, context: ToolCallContext) -> dict[str, object]:
    scope = context.scope
    return {
        "organization_id": scope.organization_id,
        "thread_id": scope.thread_id,
        "run_id": scope.run_id,
        "gateway_session_id": scope.gateway_session_id,
        "tool_call_id": context.tool_call_id,
        "tool": tool.name,
        "server_id": None if tool.mcp is None else tool.mcp.server_id,
    }


def _mcp_call(
    server: McpServer,
    binding: McpBinding,
    arguments: JsonObject,
    context: ToolCallContext,
    *,
    given: InputRound | None,
    timeout_s: float,
) -> McpCall:
    return McpCall(
        tool_name=binding.tool_name,
        arguments=arguments,
        timeout_s=timeout_s,
        output_schema=binding.output_schema,
        definition=binding.definition,
        meta=_meta(server, context) or None,
        accepts_input=server.config.elicitation is ElicitationPolicy.ASK,
        input_responses=None if given is None else given.answers or None,
        request_state=None if given is None else given.request_state,
        logs=context.logs,
        relay=context.relay,
        moves=context.moves if binding.continues and given is not None else None,
    )


def _meta(server: McpServer, context: ToolCallContext) -> dict[str, str]:
    if server.config.kind is not McpServerKind.A2A:
        return context.meta
    asks = server.config.elicitation is ElicitationPolicy.ASK
    if context.relay is not None:
        asks = "elicitation" in context.relay.capabilities
    state = {KEEPS_STATE_META: "yes"} if context.keeps_state else {}
    return {**context.meta, **state, **({ASKS_META: "yes"} if asks else {})}


def _known_answers(known: InputRound | None, asked: McpInputRequired) -> dict[str, JsonObject]:
    if known is None:
        return {}
    return {
        question.request_id: known.answers[question.request_id]
        for question in asked.questions
        if question in known.questions and question.request_id in known.answers
    }
