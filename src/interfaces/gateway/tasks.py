"""Tasks on the wire. Clients of 2025-11-25 request one with a call and fetch its result; clients of
2026-07-28 declare support and get the result with the task's status."""

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.tasks.gateway_tasks import GatewayTasks
from application.tools.agent_calls import AgentReply, as_mcp_reply
from domain.errors import ServiceError
from domain.gateway.task import GatewayTask, TaskStatus
from domain.json_value import JsonObject
from domain.threads.message_json import timestamp
from domain.tools.names import AGENT_PREFIX
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from interfaces.gateway.tool_shapes import answer_json

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TASKS_VERSION = "2025-11-25"
"""The only legacy version with tasks."""
LEGACY_TASKS: JsonObject = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
POLL_MS = 1_000
_RELATED = "io.modelcontextprotocol/related-task"
_MISSING_CAPABILITY = -32021


class GatewayTaskMethods:
    """Answers `tasks/*`, and decides which calls become tasks: calls of agents, if the client wants
    it."""

    def __init__(self, *, tasks: GatewayTasks) -> None:
        self._tasks = tasks

    def wanted(self, exchange: Exchange, tool: str) -> bool:
        """Whether a call of the tool becomes a task. Raises RpcError if it cannot."""
        if exchange.envelope.is_modern:
            return tool.startswith(AGENT_PREFIX) and _takes_tasks(exchange)
        asked = exchange.message.params.get("task")
        if asked is None or exchange.envelope.version != TASKS_VERSION:
            return False
        if not isinstance(asked, dict):
            raise RpcError(INVALID_PARAMS, "params.task must be an object.")
        if not tool.startswith(AGENT_PREFIX):
            raise RpcError(METHOD_NOT_FOUND, "This tool cannot be called as a task.")
        return True

    def begun(self, exchange: Exchange, tool: str, answer: GatewayAnswer) -> dict[str, object]:
        """The result of a call that was to become a task."""
        task = self._tasks.begun(exchange.session, tool, answer)
        if exchange.envelope.is_modern:
            if task is None:
                return answer_json(answer, any_structure=True)
            return {**_modern_json(task), "resultType": "task"}
        if task is None:
            code = answer.result.error_code or "tool_failed"
            raise RpcError(INVALID_REQUEST, answer.result.text, data={"code": code})
        return {"task": _legacy_json(task)}

    async def get(self, exchange: Exchange) -> dict[str, object]:
        task = await self._tasks.get(exchange.session, _task_id(exchange))
        return _modern_json(task) if exchange.envelope.is_modern else _legacy_json(task)

    async def result(self, exchange: Exchange) -> dict[str, object]:
        """`tasks/result`, legacy: the result of the call, as soon as it exists."""
        tell = exchange.tell
        if exchange.notes is not None:
            exchange.notes.lasts_on_purpose = True

        async def on_change(task: GatewayTask) -> None:
            if tell is not None:
                await tell({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": _legacy_json(task)})

        task_id = _task_id(exchange)
        task = await self._tasks.ended(exchange.session, task_id, on_change)
        answer = _answer_json(task, any_structure=False)
        return {**answer, "_meta": {_RELATED: {"taskId": task_id}}}

    async def cancel(self, exchange: Exchange) -> dict[str, object]:
        """`tasks/cancel`. A finished task cannot be cancelled; modern clients get no error
        for it."""
        try:
            task = await self._tasks.cancel(exchange.session, _task_id(exchange))
        except ServiceError as error:
            if error.code != "task_ended":
                raise
            if exchange.envelope.is_modern:
                return {}
            raise RpcError(INVALID_PARAMS, error.detail, data={"code": error.code}) from error
        return {} if exchange.envelope.is_modern else _legacy_json(task)

    async def update(self, exchange: Exchange) -> dict[str, object]:
        """`tasks/update`, modern: tasks of this gateway never request input, and unrequested
        answers are ignored."""
        await self._tasks.get(exchange.session, _task_id(exchange))
        return {}


def _takes_tasks(exchange: Exchange) -> bool:
    extensions = exchange.envelope.capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)


def _task_id(exchange: Exchange) -> str:
    if exchange.envelope.is_modern and not _takes_tasks(exchange):
        data: JsonObject = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
        raise RpcError(_MISSING_CAPABILITY, f"The client does not declare {TASKS_EXTENSION}.", data=data, status=400)
    task_id = exchange.message.params.get("taskId")
    if not isinstance(task_id, str):
        raise RpcError(INVALID_PARAMS, "params.taskId must be a string.")
    return task_id


def _legacy_json(task: GatewayTask) -> dict[str, object]:
    """MCP 2025-11-25: a result with `isError` is a failed task."""
    return {**_shape(task, task.status), "ttl": task.ttl_ms, "pollInterval": POLL_MS}


def _modern_json(task: GatewayTask) -> dict[str, object]:
    """MCP 2026-07-28: only a protocol error fails a task; a result with `isError` is a result."""
    status = TaskStatus.COMPLETED if task.status is TaskStatus.FAILED else task.status
    shape = {**_shape(task, status), "ttlMs": task.ttl_ms, "pollIntervalMs": POLL_MS}
    if status is TaskStatus.COMPLETED:
        shape["result"] = {"resultType": "complete", **_answer_json(task, any_structure=True)}
    return shape


def _shape(task: GatewayTask, status: TaskStatus) -> dict[str, object]:
    return {
        "taskId": task.id,
        "status": status.value,
        "statusMessage": task.message,
        "createdAt": timestamp(task.created_at),
        "lastUpdatedAt": timestamp(task.updated_at),
    }


def _answer_json(task: GatewayTask, *, any_structure: bool) -> dict[str, object]:
    assert task.result is not None
    reply = None if task.run is None else as_mcp_reply(AgentReply(result=task.result, run=task.run))
    return answer_json(GatewayAnswer(result=task.result, reply=reply), any_structure=any_structure)
