"""One prompt: the run's events as updates of the session, its pending calls as requests for
permission."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.acp.prompts import json_params, replayed, text_chunk, tool_call, tool_update
from interfaces.cli.acp.wire import FAILED, Peer, RpcFailure
from interfaces.cli.answers import parsed_as, read_as
from interfaces.cli.api import ServerEvent, ServiceApi, path_to
from interfaces.cli.failures import ApiProblem
from interfaces.cli.following import events_of_run, persistently
from interfaces.cli.transcript import Part, parts_of, provider_words
from interfaces.http.runs.views import RunView
from interfaces.http.threads.views import MessageView

RECONNECTS = 30
"""Attempts in a row, with growing pauses: a service that is started again within some minutes is
found."""
_DISPLAYED = "Tool has been displayed successfully"
_ALLOW, _REJECT = "allow", "reject"
_OPTIONS: list[JsonValue] = [
    {"optionId": _ALLOW, "name": "Allow", "kind": "allow_once"},
    {"optionId": _REJECT, "name": "Reject", "kind": "reject_once"},
]
_STOPS = {
    "max_output_tokens": "max_tokens",
    "context_exceeded": "max_tokens",
    "max_tokens": "max_tokens",
} | dict.fromkeys(("refusal", "content_filter"), "refusal")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """What an event of a run may carry that a session shows."""

    seq: int = 0
    text: str = ""
    message_id: str = ""
    message: MessageView | str | None = None
    tool_call_id: str = ""
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Shown:
    """What a session has shown of its thread: whole messages, messages in part, calls and ended
    calls by id, and for each run the last event."""

    messages: set[str] = field(default_factory=set)
    streamed: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)

    def note(self, message: MessageView) -> None:
        self.messages.add(message["id"])
        for part in parts_of(message):
            if part.type == "tool_use":
                self.calls.add(part.id)
            elif part.type == "tool_result":
                self.ended.add(part.tool_id)


class Turn:
    """Rules:
    - Each event is shown once, in order, over as many connections as needed. What the session has
      shown before is not shown again.
    - A call that requires approval is asked about; the answer decides the approval that was asked
      about, and no later one of the same call. One that was decided elsewhere meanwhile is not
      decided again.
    - Questions of MCP servers are declined. Client tools count as displayed.
    - A cancellation cancels the run, as soon as the service answers, and withdraws what is being
      asked.
    """

    def __init__(self, *, api: ServiceApi, peer: Peer, session_id: str, shown: Shown) -> None:
        self._api = api
        self._peer = peer
        self._shown = shown
        self._session_id = session_id
        self._cancelled = asyncio.Event()

    def cancel(self) -> None:
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    async def follow(self, run_id: str) -> RunView:
        """Show a run to its end; the run as it ended. Raises ApiProblem, also for a refused
        cancellation."""
        cancelling = asyncio.create_task(self._cancelled_run(run_id))
        following = asyncio.create_task(self._followed(run_id, cancelling))
        try:
            await asyncio.wait({cancelling, following}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                await cancelling
            return await following
        finally:
            cancelling.cancel()
            following.cancel()
            await asyncio.gather(cancelling, following, return_exceptions=True)

    async def _cancelled_run(self, run_id: str) -> None:
        """Cancels the run once that is asked for, also while the service is away."""
        await self._cancelled.wait()
        await persistently(lambda: self._api.post(path_to("runs", run_id, "cancel")), attempts=RECONNECTS)

    async def _followed(self, run_id: str, cancelling: asyncio.Task[None]) -> RunView:
        while True:
            after = self._shown.last.get(run_id)
            async with aclosing(events_of_run(self._api, run_id, after=after, reconnects=RECONNECTS)) as events:
                async for event in events:
                    await self._show(event)
                    if event.id is not None:
                        self._shown.last[run_id] = event.id
            run = read_as(
                RunView, await persistently(lambda: self._api.get(path_to("runs", run_id)), attempts=RECONNECTS)
            )
            if run["status"] in ("queued", "in_progress"):
                continue
            if run["status"] != "requires_action":
                return run
            if not await self._settled(run):
                self._cancelled.set()
                await cancelling

    async def _show(self, event: ServerEvent) -> None:
        told = parsed_as(TurnEvent, event.data)
        if told.message_id in self._shown.messages or told.tool_call_id in self._shown.ended:
            return
        match event.type:
            case "message.delta" | "reasoning.delta":
                self._shown.streamed.add(told.message_id)
                kind = "agent_message_chunk" if event.type == "message.delta" else "agent_thought_chunk"
                await self._update(text_chunk(kind, told.text, told.message_id))
            case "message.completed" if isinstance(told.message, dict):
                await self._show_message(told.message)
            case "tool.started":
                await self._update(self._begun(told))
            case "tool.progress" if isinstance(told.message, str):
                await self._update(tool_update(told.tool_call_id, "in_progress", told.message))
            case "tool.failed" | "tool.blocked" if told.tool_call_id in self._shown.calls:
                await self._update(tool_update(told.tool_call_id, "failed"))
            case _:
                pass

    async def _show_message(self, message: MessageView) -> None:
        if message["role"] not in ("assistant", "tool") or message["id"] in self._shown.messages:
            return
        self._shown.note(message)
        for part, update in zip(parts_of(message), replayed(message), strict=True):
            if part.type != "text" or message["id"] not in self._shown.streamed:
                await self._update(update)

    def _begun(self, told: TurnEvent) -> JsonObject:
        if told.tool_call_id in self._shown.calls:
            return tool_update(told.tool_call_id, "in_progress")
        self._shown.calls.add(told.tool_call_id)
        params = json_params(Part(type="tool_use", params=told.params))
        return tool_call(told.tool_call_id, told.name, params, "in_progress")

    async def _settled(self, run: RunView) -> bool:
        """Whether the calls that it waits for are settled; False if the turn is cancelled."""
        decisions: dict[str, str] = {}
        results: list[JsonValue] = []
        for call in read_as(list[Part], run["pending"]):
            if call.approval_id is not None:
                decision = await self._decision(call)
                if decision is None:
                    return False
                decisions[call.approval_id] = decision
            else:
                told: JsonValue = _DISPLAYED if call.elicitation is None else {"action": "decline"}
                results.append({"tool_call_id": call.id, "result": told})
        for approval_id, decision in decisions.items():
            await self._post(path_to("approvals", approval_id), {"decision": decision})
        if results:
            await self._post(path_to("runs", run["id"], "resume"), {"tool_results": results})
        return True

    async def _post(self, path: str, body: JsonObject) -> None:
        try:
            await persistently(lambda: self._api.post(path, body), attempts=RECONNECTS)
        except ApiProblem as problem:
            if problem.status != 409:  # decided elsewhere, or the run has ended
                raise

    async def _decision(self, call: Part) -> str | None:
        """`approve` or `deny`; None if the turn is cancelled."""
        asked: JsonObject = tool_call(call.id, call.name, json_params(call))
        del asked["sessionUpdate"]
        if call.reason:
            asked["content"] = [{"type": "content", "content": {"type": "text", "text": call.reason}}]
        params: JsonObject = {"sessionId": self._session_id, "toolCall": asked, "options": _OPTIONS}
        asking = asyncio.create_task(self._peer.request("session/request_permission", params))
        leaving = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            outcome = (await asking).get("outcome") if asking.done() else None
        finally:
            asking.cancel()
            leaving.cancel()
        match outcome:
            case {"outcome": "selected", "optionId": "allow"}:
                return "approve"
            case {"outcome": "selected"}:
                return "deny"
            case _:
                return None

    async def _update(self, update: JsonObject) -> None:
        await self._peer.notify("session/update", {"sessionId": self._session_id, "update": update})


def stop_reason(run: RunView) -> str:
    """Why the prompt of a run that has ended stops. Raises RpcFailure if the run failed."""
    match run["status"]:
        case "completed":
            return "end_turn"
        case "cancelled":
            return "cancelled"
        case "incomplete":
            return _STOPS.get(str(run["incomplete_reason"]), "max_turn_requests")
        case status:
            error, said = run["error"], provider_words(run)
            told = f"The run {run['id']} ended {status}." if error is None else error["detail"]
            raise RpcFailure(FAILED, f"{told} The provider said: {said}" if said else told)
