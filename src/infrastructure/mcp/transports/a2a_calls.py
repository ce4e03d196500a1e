"""Calls of the tool of a remote A2A agent: one message, then its task until it waits or has
ended."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from application.mcp.ports import McpFailureKind
from application.tools.call_context import ASKS_META, IDEMPOTENCY_META, KEEPS_STATE_META
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.a2a_agent import A2aAgent, A2aRefused, Json
from infrastructure.mcp.transports.a2a_questions import answer_of, mark_of, requests_of
from infrastructure.mcp.transports.a2a_results import (
    TERMINAL,
    WAITING,
    fault_after_message,
    json_object,
    message_of,
    parameters_of,
    result_of_message,
    result_of_task,
    state_of,
)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_MAX_FAULTS = 10
_PASSING = frozenset({McpFailureKind.NOT_CONNECTED, McpFailureKind.CONNECTION_LOST, McpFailureKind.BUSY})

Told = Callable[[str], None]


class A2aCalls:
    """Rules:
    - A call sends one message and reads its task until it waits or has ended.
    - A caller that stores where a call continues gets the task as `requestState` before it is
      waited for, and calls again with it. Such a call sends nothing, so it may be repeated.
    - For a caller that asks people, a task that waits asks them. Their answer is sent only while
      the task waits for it. For others what a task asks is the result: the model answers by another
      call.
    - The stream of an agent that has streams says when its task rests, and then the task is read.
      Without streams, and after one that broke, the task is read again and again.
    - Once a message was answered, it is never sent again: a fault of reading its task tells the
      task's id. A passing fault is read over, up to 10 times in a row.
    """

    def __init__(self, agent: A2aAgent, pace: Pace, is_over: Callable[[], bool]) -> None:
        self._agent = agent
        self._pace = pace
        self._is_over = is_over

    def begin(self, params: Json) -> "asyncio.Task[Json]":
        """The task that a call is about, or the message that answered it: sent, or read for a call
        that continues. Raises A2aRefused, TransportFailedError."""
        state = _state_in(params)
        return asyncio.create_task(self._sent(params) if state is None else self._known(state["task"]))

    async def result(self, params: Json, begun: Json, told: Told) -> dict[str, Any]:
        """The result of a call as MCP has it. Raises A2aRefused, TransportFailedError."""
        if isinstance(begun.get("message"), dict):
            return result_of_message(begun["message"])
        task, state, meta = task_in(begun.get("task")), _state_in(params), json_object(params.get("_meta"))
        if state is None and KEEPS_STATE_META in meta and state_of(task) not in TERMINAL | WAITING:
            return _continued(task)
        passed = ""
        if state is not None and state["mark"] == mark_of(task) and state_of(task) in WAITING:
            parts = answer_of(task, json_object(params.get("inputResponses")))
            if parts is None:
                await self._agent.call("CancelTask", {"id": task["id"]})
                return {"content": [{"type": "text", "text": "The question was declined."}], "isError": True}
            passed = state["mark"]
            task = await self._answered(task, parts, params) if parts else task
        task = await self._rested(task, told, passed)
        if state_of(task) in WAITING and ASKS_META in meta:
            return {**_continued(task, mark_of(task)), "inputRequests": requests_of(task)}
        return result_of_task(task)

    async def _sent(self, params: Json) -> Json:
        message = message_of(json_object(params.get("arguments")), _message_id(params))
        return await self._agent.call("SendMessage", message)

    async def _answered(self, task: Json, parts: Sequence[Json], params: Json) -> Json:
        answer = parameters_of(
            parts, f"{_message_id(params)}-{mark_of(task)}", {"taskId": task["id"], "contextId": task.get("contextId")}
        )
        return task_in((await self._agent.call("SendMessage", answer)).get("task"))

    async def _known(self, task_id: str) -> Json:
        return {"task": await self._read(task_id)}

    async def _read(self, task_id: str) -> Json:
        """The task as it is now."""
        pause_s, faults = _FIRST_PAUSE_S, 0
        while True:
            try:
                return task_in(await self._agent.call("GetTask", {"id": task_id, "historyLength": 0}))
            except TransportFailedError as exc:
                faults += 1
                if self._is_over() or exc.fault.kind not in _PASSING or faults > _MAX_FAULTS:
                    raise TransportFailedError(fault_after_message(exc.fault, task_id)) from exc
            await asyncio.sleep(pause_s)
            pause_s = _longer(pause_s)

    async def _rested(self, task: Json, told: Told, passed: str) -> Json:
        """The task once it has ended, or waits for something other than what was `passed`."""
        state, pause_s, follows = "", _FIRST_PAUSE_S, self._agent.has_streams and not passed
        while True:
            if state_of(task) != state:
                state = state_of(task)
                told(f"task {task['id']}: {state}")
            if state in TERMINAL or (state in WAITING and mark_of(task) != passed):
                return task
            said = await self._said_to_rest(task) if follows else None
            follows = said is False  # an agent without the stream, and one whose stream misleads, are read at a pace
            if not said:
                await asyncio.sleep(pause_s)
            pause_s = _longer(pause_s)
            task = await self._read(task["id"])

    async def _said_to_rest(self, task: Json) -> bool | None:
        """Whether the stream of a task said that it waits or has ended: False where it broke
        before, None where it said nothing."""
        said: bool | None = None
        with contextlib.suppress(TransportFailedError, A2aRefused):
            async with contextlib.aclosing(self._agent.updates(task["id"], self._pace)) as updates:
                async for update in updates:
                    said = False
                    holder = json_object(update.get("statusUpdate")) or json_object(update.get("task"))
                    if state_of(holder) in TERMINAL | WAITING:
                        return True
        return said


def task_in(given: object) -> Json:
    """Raises A2aRefused for what is no task."""
    if isinstance(given, dict) and isinstance(given.get("id"), str) and given["id"]:
        return given
    raise A2aRefused("The agent answered without a task.")


def _longer(pause_s: float) -> float:
    return min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _message_id(params: Json) -> str:
    return str(json_object(params.get("_meta")).get(IDEMPOTENCY_META) or uuid.uuid4().hex)


def _continued(task: Json, mark: str = "") -> dict[str, Any]:
    state = json.dumps({"task": task["id"], "mark": mark}, separators=(",", ":"))
    return {"resultType": "input_required", "requestState": state}


def _state_in(params: Json) -> dict[str, str] | None:
    """The state that `_continued` gave, which callers keep and cannot change."""
    given = params.get("requestState")
    return None if given is None else json.loads(str(given))
