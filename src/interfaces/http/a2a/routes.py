"""Routes of the HTTP binding of A2A, below an agent's address. They are not in the OpenAPI
document: their shapes are those of the protocol."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.response.base import ASGIResponse

from domain.errors import Violation, invalid, not_found
from domain.json_value import JsonObject, JsonValue
from interfaces.http.a2a.calls import A2aCalls, Caller
from interfaces.http.a2a.errors import Failure, media_type_for
from interfaces.http.a2a.versions import require_version
from interfaces.http.paths import AgentPath
from interfaces.http.requests import ApiRequest

TaskPath = Annotated[str, PathParameter(description="The id of a task, or the id and an operation after a colon.")]
ConfigPath = Annotated[str, PathParameter(description="The id of a push notification config.")]
HistoryLength = Annotated[int | None, QueryParameter(name="historyLength")]


@post("/message:send", status_code=200)
async def send_message(request: ApiRequest, agent: AgentPath, a2a_calls: NamedDependency[A2aCalls]) -> ASGIResponse:
    """Requires the role runner."""
    return await _whole(request, agent, a2a_calls, "SendMessage", await request.json())


@post("/message:stream", status_code=200)
async def stream_message(request: ApiRequest, agent: AgentPath, a2a_calls: NamedDependency[A2aCalls]) -> ASGIResponse:
    """Requires the role runner."""
    return await _streamed(request, agent, a2a_calls, "SendStreamingMessage", await request.json())


@get("/tasks")
async def list_tasks(
    *,
    request: ApiRequest,
    agent: AgentPath,
    a2a_calls: NamedDependency[A2aCalls],
    context: Annotated[str | None, QueryParameter(name="contextId")] = None,
    in_state: Annotated[str | None, QueryParameter(name="status")] = None,
    page_size: Annotated[int | None, QueryParameter(name="pageSize")] = None,
    page_token: Annotated[str | None, QueryParameter(name="pageToken")] = None,
    history_length: HistoryLength = None,
    changed_after: Annotated[str | None, QueryParameter(name="statusTimestampAfter")] = None,
    artifacts: Annotated[bool | None, QueryParameter(name="includeArtifacts")] = None,
) -> ASGIResponse:
    """By their last change, newest first."""
    given = {
        "contextId": context,
        "status": in_state,
        "pageSize": page_size,
        "pageToken": page_token,
        "historyLength": history_length,
        "statusTimestampAfter": changed_after,
        "includeArtifacts": artifacts,
    }
    return await _whole(request, agent, a2a_calls, "ListTasks", _stated(given))


@get("/tasks/{task:str}")
async def get_task(
    request: ApiRequest,
    agent: AgentPath,
    task: TaskPath,
    a2a_calls: NamedDependency[A2aCalls],
    history_length: HistoryLength = None,
) -> ASGIResponse:
    """A task, or its updates from now on (`:subscribe`)."""
    task_id, operation = _named(task)
    if operation == "subscribe":
        return await _streamed(request, agent, a2a_calls, "SubscribeToTask", {"id": task_id})
    given = {"id": task, "historyLength": history_length}
    return await _whole(request, agent, a2a_calls, "GetTask", _stated(given))


@post("/tasks/{task:str}", status_code=200)
async def act_on_task(
    request: ApiRequest, agent: AgentPath, task: TaskPath, a2a_calls: NamedDependency[A2aCalls]
) -> ASGIResponse:
    """`:cancel` or `:subscribe`."""
    task_id, operation = _named(task)
    if operation == "cancel":
        return await _whole(request, agent, a2a_calls, "CancelTask", {"id": task_id})
    if operation == "subscribe":
        return await _streamed(request, agent, a2a_calls, "SubscribeToTask", {"id": task_id})
    raise not_found("route", task)


@post("/tasks/{task:str}/pushNotificationConfigs", status_code=200)
async def add_push_config(
    request: ApiRequest, agent: AgentPath, task: TaskPath, a2a_calls: NamedDependency[A2aCalls]
) -> ASGIResponse:
    """Where updates of the task are sent."""
    given = {**_object(await request.json()), "taskId": task}
    return await _whole(request, agent, a2a_calls, "CreateTaskPushNotificationConfig", given)


@get("/tasks/{task:str}/pushNotificationConfigs")
async def list_push_configs(
    request: ApiRequest, agent: AgentPath, task: TaskPath, a2a_calls: NamedDependency[A2aCalls]
) -> ASGIResponse:
    """All of the task."""
    return await _whole(request, agent, a2a_calls, "ListTaskPushNotificationConfigs", {"taskId": task})


@get("/tasks/{task:str}/pushNotificationConfigs/{config:str}")
async def get_push_config(
    request: ApiRequest, agent: AgentPath, task: TaskPath, config: ConfigPath, a2a_calls: NamedDependency[A2aCalls]
) -> ASGIResponse:
    """One of the task."""
    given = {"taskId": task, "id": config}
    return await _whole(request, agent, a2a_calls, "GetTaskPushNotificationConfig", given)


@delete("/tasks/{task:str}/pushNotificationConfigs/{config:str}", status_code=200)
async def delete_push_config(
    request: ApiRequest, agent: AgentPath, task: TaskPath, config: ConfigPath, a2a_calls: NamedDependency[A2aCalls]
) -> ASGIResponse:
    """Nothing more is sent there."""
    given = {"taskId": task, "id": config}
    return await _whole(request, agent, a2a_calls, "DeleteTaskPushNotificationConfig", given)


@get("/extendedAgentCard")
async def extended_card(request: ApiRequest, agent: AgentPath, a2a_calls: NamedDependency[A2aCalls]) -> ASGIResponse:
    """The card of the agent for the caller's key."""
    return await _whole(request, agent, a2a_calls, "GetExtendedAgentCard", {})


async def _whole(request: ApiRequest, agent: str, calls: A2aCalls, method: str, given: object) -> ASGIResponse:
    require_version(request)
    answer = await calls.call(Caller(request.principal, agent, request.receive), method, given)
    return ASGIResponse(body=msgspec.json.encode(answer), media_type=media_type_for(request))


async def _streamed(request: ApiRequest, agent: str, calls: A2aCalls, method: str, given: object) -> ASGIResponse:
    require_version(request)
    by = Caller(request.principal, agent, request.receive)
    return await calls.follow(by, method, given, lambda update: update, _last)


def _last(failed: Failure) -> bytes:
    return b"event: error\ndata: %s\n\n" % msgspec.json.encode(failed.rest())


def _named(task: str) -> tuple[str, str]:
    """The id and the operation of a path such as `run_1:cancel`."""
    task_id, _, operation = task.rpartition(":")
    return task_id, operation


def _object(given: JsonValue) -> JsonObject:
    """Raises INVALID `body_invalid`."""
    if isinstance(given, dict):
        return given
    wrong = Violation(path="", message="must be a JSON object")
    raise invalid("body_invalid", "The request body is not valid.", wrong)


def _stated(given: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}
