"""The gateway's methods. The generations differ only in the marks of their results."""

from collections.abc import Awaitable, Callable, Mapping

from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.tools.list_tools import ListGatewayTools
from application.mcp.ports import McpProgress, ProgressCallback
from application.tools.agent_calls import DEPTH_META
from application.tools.call_context import IDEMPOTENCY_META
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import ToolNames
from domain.json_value import JsonObject, JsonValue
from domain.mcp.apps import APPS_EXTENSION, renders_apps
from interfaces.gateway.asking import askable_client, input_required, input_responses, missing_capability
from interfaces.gateway.contents import CONTENT_CAPABILITIES, LISTS, READS, GatewayContents
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.generations import HEADER_MISMATCH, LEGACY_VERSIONS, MODERN_VERSIONS, negotiated
from interfaces.gateway.logs import LOGGING_CAPABILITIES, GatewayLogs
from interfaces.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RATE_LIMITED,
    RpcError,
)
from interfaces.gateway.pages import page_of
from interfaces.gateway.streams import CHANGE_CAPABILITIES
from interfaces.gateway.subscriptions import ResourceSubscriptions
from interfaces.gateway.tasks import LEGACY_TASKS, TASKS_EXTENSION, TASKS_VERSION, GatewayTaskMethods
from interfaces.gateway.tool_shapes import answer_json, tool_json

TTL_MS = 5_000
"""How long clients may cache a list. A changed agent is visible after this time."""

_INSTRUCTIONS = "The tools of an agent, under its policy: some calls may be refused, and say why."
CAPABILITIES: JsonObject = {
    **CHANGE_CAPABILITIES,
    **CONTENT_CAPABILITIES,
    **LOGGING_CAPABILITIES,
    "extensions": {APPS_EXTENSION: {}},
}
_SERVER_INFO_META = "io.modelcontextprotocol/serverInfo"
_PASSED_META = frozenset({"traceparent", "tracestate", DEPTH_META})
_MAX_RETRY_KEY = 256


class GatewayMethods:
    """Answers authenticated requests of supported versions."""

    def __init__(
        self,
        *,
        list_tools: ListGatewayTools,
        call_tool: CallGatewayTool,
        contents: GatewayContents,
        logs: GatewayLogs,
        subscriptions: ResourceSubscriptions,
        tasks: GatewayTaskMethods,
        version: str,
    ) -> None:
        self._list_tools = list_tools
        self._call_tool = call_tool
        self._contents = contents
        self._logs = logs
        self._tasks = tasks
        self._server_info: JsonObject = {"name": "dragoman", "title": "Dragoman", "version": version}
        of_contents = dict.fromkeys(LISTS, self._listed) | dict.fromkeys(READS, self._read)
        self._legacy: Mapping[str, Callable[[Exchange], Awaitable[dict[str, object]]]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "tools/list": self._tools,
            "tools/call": self._call,
            "logging/setLevel": self._logs.set_level,
            "resources/subscribe": subscriptions.subscribe,
            "resources/unsubscribe": subscriptions.unsubscribe,
            "tasks/get": tasks.get,
            "tasks/result": tasks.result,
            "tasks/cancel": tasks.cancel,
            **of_contents,
        }
        self._modern: Mapping[str, Callable[[Exchange], Awaitable[dict[str, object]]]] = {
            "server/discover": self._discover,
            "tools/list": self._tools,
            "tools/call": self._call,
            "tasks/get": tasks.get,
            "tasks/update": tasks.update,
            "tasks/cancel": tasks.cancel,
            **of_contents,
        }

    async def answer(self, exchange: Exchange) -> dict[str, object]:
        """The result of a request. Raises RpcError."""
        methods = self._modern if exchange.envelope.is_modern else self._legacy
        method = methods.get(exchange.message.method)
        if method is None:
            status = 404 if exchange.envelope.is_modern else 200
            raise RpcError(METHOD_NOT_FOUND, "There is no such method here.", status=status)
        try:
            result = await method(exchange)
        except ServiceError as error:
            raise rpc_error(error) from error
        return {"resultType": "complete", **result} if exchange.envelope.is_modern else result

    async def _initialize(self, exchange: Exchange) -> dict[str, object]:
        version = negotiated(exchange.message.params.get("protocolVersion"))
        return {
            "protocolVersion": version,
            "capabilities": {**CAPABILITIES, **LEGACY_TASKS} if version == TASKS_VERSION else CAPABILITIES,
            "serverInfo": self._server_info,
            "instructions": _INSTRUCTIONS,
        }

    async def _ping(self, exchange: Exchange) -> dict[str, object]:
        return {}

    async def _discover(self, exchange: Exchange) -> dict[str, object]:
        return {
            "supportedVersions": [*MODERN_VERSIONS, *reversed(LEGACY_VERSIONS)],
            "capabilities": {**CAPABILITIES, "extensions": {APPS_EXTENSION: {}, TASKS_EXTENSION: {}}},
            "serverInfo": self._server_info,
            "_meta": {_SERVER_INFO_META: self._server_info},
            "instructions": _INSTRUCTIONS,
            "ttlMs": TTL_MS,
            "cacheScope": "private",
        }

    async def _tools(self, exchange: Exchange) -> dict[str, object]:
        tools = await self._list_tools.execute(
            exchange.session, exchange.tool_search, renders_apps=renders_apps(exchange.envelope.capabilities)
        )
        page, following = page_of(tools, exchange.message.params.get("cursor"))
        has_tasks = exchange.envelope.version == TASKS_VERSION
        has_uris = exchange.session.names is ToolNames.ORIGINAL
        listed: dict[str, object] = {
            "tools": [
                tool_json(
                    name,
                    tool,
                    as_task=has_tasks,
                    uris_of=None if has_uris or tool.mcp is None else tool.mcp.server_slug,
                )
                for name, tool in page
            ]
        }
        if following is not None:
            listed["nextCursor"] = following
        if exchange.envelope.is_modern:
            listed |= {"ttlMs": TTL_MS, "cacheScope": "private"}
        return listed

    async def _listed(self, exchange: Exchange) -> dict[str, object]:
        message = exchange.message
        listed = await self._contents.listed(exchange.session, message.method, message.params)
        return listed | {"ttlMs": TTL_MS, "cacheScope": "private"} if exchange.envelope.is_modern else listed

    async def _read(self, exchange: Exchange) -> dict[str, object]:
        message = exchange.message
        read = await self._contents.read(exchange.session, exchange.envelope, message.method, message.params)
        if exchange.envelope.is_modern and message.method == "resources/read":
            return {"ttlMs": 0, "cacheScope": "private", **read}
        return read

    async def _call(self, exchange: Exchange) -> dict[str, object]:
        params = exchange.message.params
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "params.name must be the name of a tool.")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "params.arguments must be an object.")
        as_task = self._tasks.wanted(exchange, name)
        meta = exchange.message.meta
        answer = await self._call_tool.execute(
            CallGatewayToolCommand(
                session=exchange.session,
                name=name,
                arguments=arguments or {},
                meta=_passed(meta),
                on_progress=_progress_relay(exchange),
                logs=await self._logs.tap(exchange),
                resumable=exchange.envelope.is_modern,
                request_state=_request_state(exchange),
                retry_key=_retry_key(meta),
                as_task=as_task,
                param_headers=exchange.envelope.param_headers if exchange.envelope.is_modern else None,
                tool_search=exchange.tool_search,
                renders_apps=renders_apps(exchange.envelope.capabilities),
                client=None if as_task else askable_client(exchange),
                responses=input_responses(exchange),
            )
        )
        if exchange.notes is not None:
            exchange.notes.tool = answer.called or name  # a known tool: calls of unknown names were rejected
        if as_task:
            return self._tasks.begun(exchange, name, answer)
        if answer.asked is not None:
            return input_required(answer.asked)
        if answer.missing and exchange.envelope.is_modern:
            raise missing_capability(answer.missing)
        if answer.waiting is not None and exchange.envelope.is_modern:
            return {"resultType": "input_required", "requestState": answer.waiting.request_state}
        return answer_json(answer, any_structure=exchange.envelope.is_modern)


def _progress_relay(exchange: Exchange) -> ProgressCallback | None:
    """Sends the progress of a call to a client that sent a token for it."""
    token, tell = exchange.message.meta.get("progressToken"), exchange.tell
    if tell is None or token is None:
        return None

    async def on_progress(progress: McpProgress) -> None:
        params: dict[str, object] = {"progressToken": token, "progress": progress.progress}
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        await tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    return on_progress


def _passed(meta: Mapping[str, JsonValue]) -> dict[str, str]:
    """The parts of a call's `_meta` that are passed on."""
    if _PASSED_META.isdisjoint(meta):
        return {}
    return {key: value for key, value in meta.items() if key in _PASSED_META and isinstance(value, str)}


def _request_state(exchange: Exchange) -> str | None:
    """The state that the client got with `input_required` (MCP 2026-07-28,
    basic/utilities/mrtr)."""
    state = exchange.message.params.get("requestState")
    if state is not None and not isinstance(state, str):
        raise RpcError(INVALID_PARAMS, "params.requestState must be a string.")
    return state if exchange.envelope.is_modern else None


def _retry_key(meta: Mapping[str, JsonValue]) -> str | None:
    """The client's key for a call that it may retry, as Dragoman itself sends to servers."""
    key = meta.get(IDEMPOTENCY_META)
    return key if isinstance(key, str) and 0 < len(key) <= _MAX_RETRY_KEY else None


def rpc_error(error: ServiceError) -> RpcError:
    """A failure of a use case as a JSON-RPC error. An unknown tool is an invalid parameter (MCP
    server/tools)."""
    if error.code == "tool_not_found":
        return RpcError(INVALID_PARAMS, f"Unknown tool. {error.detail}")
    if error.code == "header_mismatch":
        return RpcError(HEADER_MISMATCH, error.detail, status=400)
    if error.kind is ErrorKind.LIMIT:
        seconds = int(error.extra.get("retry_after_s", "1"))
        return RpcError(RATE_LIMITED, error.detail, data={"code": error.code, "retryAfterSeconds": seconds})
    code = INVALID_PARAMS if error.kind is ErrorKind.INVALID else INTERNAL_ERROR
    return RpcError(code, error.detail, data={"code": error.code})
