"""The methods of an ACP agent (protocol version 1): sessions are threads, prompts are runs."""

from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

from domain.json_value import JsonObject
from interfaces.cli.acp.prompts import input_of, replayed
from interfaces.cli.acp.turn import RECONNECTS, Shown, Turn, stop_reason
from interfaces.cli.acp.wire import INVALID_PARAMS, METHOD_NOT_FOUND, Peer, RpcFailure
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import PAGE_SIZE, Query, ServiceApi, listed, path_to
from interfaces.cli.failures import ApiProblem
from interfaces.cli.following import persistently
from interfaces.http.runs.views import RunView
from interfaces.http.threads.views import MessageView, ThreadView

PROTOCOL_VERSION = 1
_NOT_FOUND = -32002
_UNFINISHED = ("queued", "in_progress", "requires_action")
_CAPABILITIES: JsonObject = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {"resume": {}, "close": {}},
}


class AcpBridge:
    """Rules:
    - A session is a thread of the agent; the client's directory is stored in its metadata and not
      read. MCP servers of the client are not connected: the agent has its own, under its policy.
    - A session has one prompt at a time. A prompt finishes an unfinished run of the thread first,
      and asks what that waits for. However that run ends, the prompt's own one starts, except after
      a cancellation.
    - The run continues without the editor; a later session on the thread shows what became of it: a
      loaded one what is not in the messages, a resumed one the unfinished run from its beginning.
    """

    def __init__(self, *, api: ServiceApi, peer: Peer, agent: str, version: str) -> None:
        self._api = api
        self._peer = peer
        self._agent = agent
        self._info: JsonObject = {"name": "dragoman", "title": "Dragoman", "version": version}
        self._turns: dict[str, Turn] = {}
        self._shown: dict[str, Shown] = {}
        self._methods: Mapping[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
        }

    async def answer(self, method: str, params: JsonObject) -> JsonObject:
        """The result of a request or notification. Raises RpcFailure, CommandFailure."""
        found = self._methods.get(method)
        if found is None:
            raise RpcFailure(METHOD_NOT_FOUND, "There is no such method here.")
        return await found(params)

    async def _initialize(self, params: JsonObject) -> JsonObject:
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": _CAPABILITIES,
            "agentInfo": self._info,
            "authMethods": [],
        }

    async def _new(self, params: JsonObject) -> JsonObject:
        directory = params.get("cwd")
        metadata: JsonObject = {"acp_cwd": directory} if isinstance(directory, str) else {}
        thread = await self._api.post(path_to("threads"), {"metadata": metadata})
        return {"sessionId": read_as(ThreadView, thread)["id"]}

    async def _load(self, params: JsonObject) -> JsonObject:
        session_id = await self._existing(params)
        page = await listed(self._api, path_to("threads", session_id, "messages"))
        shown = self._shown[session_id] = Shown()
        for message in entries_of(MessageView, page):
            shown.note(message)
            for update in replayed(message):
                await self._peer.notify("session/update", {"sessionId": session_id, "update": update})
        return {}

    async def _resume(self, params: JsonObject) -> JsonObject:
        await self._existing(params)
        return {}

    async def _close(self, params: JsonObject) -> JsonObject:
        await self._cancel(params)
        return {}

    async def _prompt(self, params: JsonObject) -> JsonObject:
        session_id, content = _session_id(params), input_of(params.get("prompt"))
        if session_id in self._turns:
            raise RpcFailure(INVALID_PARAMS, "The session has a prompt under way.")
        shown = self._shown.setdefault(session_id, Shown())
        turn = self._turns[session_id] = Turn(api=self._api, peer=self._peer, session_id=session_id, shown=shown)
        try:
            for waiting in await self._unfinished(session_id):
                await turn.follow(waiting["id"])
                if turn.is_cancelled:
                    return {"stopReason": "cancelled"}
            run = await turn.follow(await self._started(session_id, {"input": content}))
            self._shown.pop(session_id, None)  # what comes later is shown for the first time
            return {"stopReason": stop_reason(run)}
        finally:
            del self._turns[session_id]

    async def _cancel(self, params: JsonObject) -> JsonObject:
        turn = self._turns.get(_session_id(params))
        if turn is not None:
            turn.cancel()
        return {}

    async def _started(self, session_id: str, body: JsonObject) -> str:
        """The run of the prompt. A repeated request with the same key starts no second one."""
        key = {"Idempotency-Key": uuid4().hex}
        name: JsonObject = {"agent_id" if self._agent.startswith("agt_") else "agent": self._agent}
        path = path_to("threads", session_id, "runs")
        run = await persistently(lambda: self._api.post(path, {**name, **body}, headers=key), attempts=RECONNECTS)
        return read_as(RunView, run)["id"]

    async def _unfinished(self, session_id: str) -> list[RunView]:
        """In order. They are among the newest, because runs of a thread are executed one after the
        other."""
        newest: Query = {"thread_id": session_id, "limit": PAGE_SIZE}
        page = await persistently(lambda: self._api.get(path_to("runs"), newest), attempts=RECONNECTS)
        runs = [run for run in entries_of(RunView, page) if run["status"] in _UNFINISHED]
        return sorted(runs, key=lambda run: run["created_at"])

    async def _existing(self, params: JsonObject) -> str:
        session_id = _session_id(params)
        try:
            await self._api.get(path_to("threads", session_id))
        except ApiProblem as problem:
            if problem.status != 404:
                raise
            raise RpcFailure(_NOT_FOUND, f"There is no session {session_id!r}.") from problem
        return session_id


def _session_id(params: JsonObject) -> str:
    session_id = params.get("sessionId")
    if not isinstance(session_id, str) or not session_id:
        raise RpcFailure(INVALID_PARAMS, "sessionId must be the id of a session.")
    return session_id
