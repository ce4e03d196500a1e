"""The operations of A2A by their names, as the JSON-RPC binding calls them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import Receive
from pydantic import BaseModel

from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from interfaces.http.a2a.cards import AgentCards
from interfaces.http.a2a.errors import (
    MEDIA_TYPE,
    Failure,
    failure,
    failure_of_stream,
    unsupported_content,
)
from interfaces.http.a2a.pushes import A2aPushes
from interfaces.http.a2a.schemas import (
    A2aBody,
    CreatePushBody,
    ListTasksBody,
    NothingBody,
    SendMessageBody,
    TaskBody,
    TaskPushBody,
    TaskPushesBody,
)
from interfaces.http.a2a.tasks import A2aTasks
from interfaces.http.a2a.versions import require_version
from interfaces.http.bodies import decoded_body
from interfaces.http.requests import ApiRequest
from interfaces.http.sse import EventStream, data_frame
from interfaces.http.stream_places import StreamPlace

Followed = tuple[Run, StreamPlace, AsyncGenerator[JsonObject, None]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls which agent."""

    principal: Principal
    agent: str
    receive: Receive


class A2aCalls:
    """Rules:
    - Both bindings call the same operations and answer with the same objects.
    - Errors of a stream that has begun are its last event.
    """

    def __init__(self, *, tasks: A2aTasks, pushes: A2aPushes, cards: AgentCards, heartbeat_s: float) -> None:
        self._tasks = tasks
        self._heartbeat_s = heartbeat_s
        self._whole: dict[str, tuple[type[A2aBody], Callable[..., Awaitable[JsonValue]]]] = {
            "SendMessage": (SendMessageBody, self._send),
            "GetTask": (TaskBody, lambda by, body: tasks.get(by.principal, by.agent, body)),
            "ListTasks": (ListTasksBody, lambda by, body: tasks.list(by.principal, by.agent, body)),
            "CancelTask": (TaskBody, lambda by, body: tasks.cancel(by.principal, by.agent, body)),
            "CreateTaskPushNotificationConfig": (CreatePushBody, self._of_task(pushes.create)),
            "GetTaskPushNotificationConfig": (TaskPushBody, self._of_task(pushes.get)),
            "ListTaskPushNotificationConfigs": (TaskPushesBody, self._of_task(pushes.list)),
            "DeleteTaskPushNotificationConfig": (TaskPushBody, self._of_task(pushes.delete)),
            "GetExtendedAgentCard": (NothingBody, lambda by, _: cards.extended(by.principal, by.agent)),
        }
        self._streamed: dict[str, tuple[type[A2aBody], Callable[..., Awaitable[Followed]]]] = {
            "SendStreamingMessage": (SendMessageBody, lambda by, body: tasks.stream(by.principal, by.agent, body)),
            "SubscribeToTask": (TaskBody, lambda by, body: tasks.subscribe(by.principal, by.agent, body)),
        }

    async def rpc(self, request: ApiRequest, agent: str) -> ASGIResponse:
        """The answer to a JSON-RPC request; failures are error objects."""
        request_id: JsonValue = None
        try:
            _require_json(request)
            given = await request.json()
            request_id, method, params = _rpc_request(given)
            require_version(request)
            by = Caller(request.principal, agent, request.receive)
            if method in self._streamed:
                return await self.follow(
                    by,
                    method,
                    params,
                    lambda update: {"jsonrpc": "2.0", "id": request_id, "result": update},
                    lambda failed: data_frame(failed.rpc(request_id)),
                )
            if method not in self._whole:
                raise invalid("rpc_method_unknown", "There is no such method.")
            answer: JsonObject = {"jsonrpc": "2.0", "id": request_id, "result": await self.call(by, method, params)}
            return ASGIResponse(body=msgspec.json.encode(answer), media_type="application/json")
        except Exception as error:  # noqa: BLE001 (logged, and told to the client)
            return failure(request, error).rpc_response(request_id)

    async def call(self, by: Caller, method: str, params: object) -> JsonValue:
        """What an operation gives. Raises ServiceError."""
        model, operation = self._whole[method]
        return await operation(by, decoded_body(model, params))

    async def follow(
        self,
        by: Caller,
        method: str,
        params: object,
        wrapped: Callable[[JsonObject], JsonObject],
        failed: Callable[[Failure], bytes],
    ) -> EventStream:
        """The updates of a task as server-sent events. Raises ServiceError before the first."""
        model, operation = self._streamed[method]
        run, place, updates = await operation(by, decoded_body(model, params))

        async def frames() -> AsyncGenerator[bytes, None]:
            try:
                async with aclosing(updates) as told:
                    async for update in told:
                        yield data_frame(wrapped(update))
            except Exception as error:  # noqa: BLE001 (logged, and told to the client)
                yield failed(failure_of_stream(run.id, error))

        return EventStream(frames(), heartbeat_s=self._heartbeat_s, place=place)

    def _of_task(
        self, operation: Callable[[Principal, Any], Awaitable[JsonValue]]
    ) -> Callable[[Caller, Any], Awaitable[JsonValue]]:
        """An operation on a task of the agent. Raises NOT_FOUND for tasks of others."""

        async def checked(by: Caller, body: TaskPushesBody | CreatePushBody) -> JsonValue:
            await self._tasks.run_of(by.principal, by.agent, body.task_id)
            return await operation(by.principal, body)

        return checked

    async def _send(self, by: Caller, body: BaseModel) -> JsonValue:
        return await self._tasks.send(by.principal, by.agent, cast(SendMessageBody, body), by.receive)


def _require_json(request: ApiRequest) -> None:
    """Raises INVALID `content_type_unsupported`."""
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type not in ("application/json", MEDIA_TYPE):
        raise unsupported_content(media_type)


def _rpc_request(given: JsonValue) -> tuple[JsonValue, str, JsonValue]:
    """The id, the method and the parameters. Raises INVALID `rpc_invalid`."""
    if isinstance(given, dict) and given.get("jsonrpc") == "2.0" and isinstance(given.get("method"), str):
        request_id, params = given.get("id"), given.get("params", {})
        if isinstance(request_id, str | int | None) and not isinstance(request_id, bool):
            return request_id, str(given["method"]), {} if params is None else params
    raise invalid("rpc_invalid", "The request is no request of JSON-RPC 2.0.")
