"""The synchronous client, written by `make clients` from `aio.py`: change that one."""

import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, Unpack, cast
from urllib.parse import quote
from uuid import uuid4

import httpx

from dragoman_client import models
from dragoman_client.errors import ConnectionLost, DragomanError, LimitReached, NotFound, Unavailable, api_error
from dragoman_client.frames import HEARTBEATS_MISSED_S, Frames, pauses

_BUSY = frozenset({429, 502, 503, 504})
"""Statuses that may be others a moment later."""
_LONGEST_RETRY_AFTER_S = 30.0
_UNFINISHED = frozenset({"queued", "in_progress"})
_ONE_WAIT_S = 30.0
Json: TypeAlias = dict[str, Any]


class Dragoman:
    """A connection to a service. `url` and `api_key` are those in DRAGOMAN_URL and DRAGOMAN_API_KEY by default.

    - What is safe to repeat is repeated up to `retries` times when the connection breaks or the service is busy: reads, and
      starts of runs, which carry an idempotency key. Everything else is repeated only if it was never sent.
    - Raises ApiError (by status: NotFound, Conflict, …) for what the service rejects, ConnectionLost after retries.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        retries: int = 6,
        http: httpx.Client | None = None,
    ) -> None:
        base = url or os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:8321")
        key = api_key or os.environ.get("DRAGOMAN_API_KEY", "")
        if not key:
            raise DragomanError("There is no API key: give `api_key`, or set DRAGOMAN_API_KEY.")
        self._http = http or httpx.Client(timeout=timeout_s)
        self._base = f"{base.rstrip('/')}/v1"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._retries = retries
        self.agents = Agents(self)
        self.servers = Servers(self)
        self.threads = Threads(self)
        self.runs = Runs(self)
        self.approvals = Approvals(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        repeatable: bool | None = None,
    ) -> Any:
        """Any operation of the HTTP API, by its path below `/v1`: the decoded JSON of the response, or None."""
        response = self._send(
            method, path, repeatable=method == "GET" if repeatable is None else repeatable,
            json=json, content=content, params=_stated(params), headers={**self._headers, **(headers or {})},
        )  # fmt: skip
        return response.json() if response.content else None

    def download(self, source_id: str) -> bytes:
        """The content of a source."""
        response = self._send("GET", f"/sources/{source_id}/content", repeatable=True, headers=self._headers)
        return response.content

    def pages(self, path: str, **params: object) -> Iterator[Any]:
        """The entries of a list, page by page as they are needed."""
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params={**params, "cursor": cursor})
            for entry in page["data"]:
                yield entry
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _send(self, method: str, path: str, *, repeatable: bool, **request: Any) -> httpx.Response:
        for pause in (*pauses(self._retries), None):
            try:
                response = self._http.request(method, f"{self._base}{path}", **request)
            except httpx.TransportError as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause is None or not (repeatable or never_sent):
                    raise ConnectionLost(f"{method} {path}: {error!r}") from error
                wait_s = pause
            else:
                busy_s = _wait(response, pause) if repeatable else None
                if busy_s is None:
                    return _checked(response)
                wait_s = busy_s
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _follow(self, path: str, after: int) -> Generator[Json, None, None]:
        """Every event after `after` once and in order, then `end`. A stream that breaks is opened again after its last
        event. Raises ConnectionLost when that fails too often in a row."""
        timeout = httpx.Timeout(self._http.timeout.connect, read=HEARTBEATS_MISSED_S)
        waits = pauses(self._retries)
        while True:
            reason: Exception | None = None
            headers = {**self._headers, "Last-Event-ID": str(after)}
            try:
                with self._http.stream("GET", f"{self._base}{path}", headers=headers, timeout=timeout) as response:
                    if response.is_error:
                        response.read()
                    frames = Frames()
                    for line in _checked(response).iter_lines():
                        event = frames.feed(line)
                        if event is not None and event.get("seq", after + 1) > after:
                            after, waits = event.get("seq", after), pauses(self._retries)
                            yield event
                            if event["type"] == "end":
                                return
            except (httpx.TransportError, Unavailable, LimitReached) as error:
                reason = error
            pause = next(waits, None)
            if pause is None:
                raise ConnectionLost(f"The stream {path} broke: {reason or 'it ended early'}") from reason
            time.sleep(pause)


class Run:
    """A run as it was last seen. `view` is the whole of it, `messages` are those it wrote (after `wait`)."""

    def __init__(self, client: Dragoman, view: models.RunView) -> None:
        self._client = client
        self._last_seq = 0
        self.view = view
        self.messages: list[models.MessageView] = []

    @property
    def id(self) -> str:
        return self.view["id"]

    @property
    def thread_id(self) -> str:
        return self.view["thread_id"]

    @property
    def status(self) -> models.RunStatus:
        return self.view["status"]

    @property
    def output(self) -> str | None:
        """Text of the last reply."""
        return self.view["output"]

    @property
    def pending(self) -> list["Call"]:
        """The tool calls that the run waits for."""
        return [Call(self, call) for call in self.view["pending"]]

    def refresh(self) -> Self:
        """Read the run again."""
        self.view = self._client.request("GET", f"/runs/{self.id}")
        return self

    def wait(self, timeout_s: float | None = None) -> Self:
        """Until the run has ended or requires action, or `timeout_s` is over: see `status`."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = _ONE_WAIT_S if ends_at is None else max(0.0, min(_ONE_WAIT_S, ends_at - time.monotonic()))
            seen = self._client.request("GET", f"/runs/{self.id}/wait", params={"timeout_s": left_s})
            self.view, self.messages = seen["run"], seen["messages"]
            if self.status not in _UNFINISHED or (ends_at is not None and time.monotonic() >= ends_at):
                return self

    def stream(self, after: int | None = None) -> Iterator[models.RunEventView]:
        """The events of the run, each exactly once, until it has ended or waits for something that is not settled in the
        loop. Reconnects by itself. A later call continues after the last event, or after the event numbered `after`."""
        self._last_seq = self._last_seq if after is None else after
        while True:
            with closing(self._client._follow(f"/runs/{self.id}/stream", self._last_seq)) as events:
                for event in events:
                    if event["type"] == "end":
                        break
                    self._last_seq = event["seq"]
                    if event["type"] == "run.requires_action":
                        self.view = {**self.view, "status": "requires_action", "pending": event["pending"]}
                    yield cast("models.RunEventView", event)
            self.refresh()
            if self.status not in _UNFINISHED:
                return

    def retry(self) -> "Run":
        """The run that continues this failed one, from its last stored step."""
        path, headers = f"/runs/{self.id}/retry", {"Idempotency-Key": str(uuid4())}
        return Run(self._client, self._client.request("POST", path, headers=headers, repeatable=True))

    def cancel(self) -> Self:
        """Ask the run to stop."""
        self.view = self._client.request("POST", f"/runs/{self.id}/cancel", repeatable=True)
        return self

    def resume(self, **body: Unpack[models.ResumeRunBody]) -> Self:
        """Give results and decisions for several pending calls at once."""
        self.view = self._client.request("POST", f"/runs/{self.id}/resume", json=body)
        return self


class Call:
    """A pending tool call: `approve` or `deny` it, give its `result` (client tools), or `answer` its server's question."""

    def __init__(self, run: Run, view: models.ToolUseView) -> None:
        self._run = run
        self.view = view
        self.id, self.name, self.params = view["id"], view["name"], view["params"]
        self.reason, self.elicitation = view.get("reason"), view.get("elicitation")

    def approve(self, *, arguments: Json | None = None, reason: str | None = None) -> models.ApprovalView:
        """Let the call be executed, with other arguments if they are given."""
        return self._decide("approve", arguments, reason)

    def deny(self, reason: str | None = None) -> models.ApprovalView:
        """The model gets the reason instead of a result."""
        return self._decide("deny", None, reason)

    def result(self, result: object, *, is_error: bool = False) -> Run:
        """The result of a client tool."""
        return self._run.resume(tool_results=[{"tool_call_id": self.id, "result": result, "is_error": is_error}])

    def answer(self, content: Json) -> Run:
        """Accept the question of the call's MCP server."""
        return self.result({"action": "accept", "content": content})

    def decline(self) -> Run:
        """Decline the question of the call's MCP server."""
        return self.result({"action": "decline"})

    def _decide(
        self, decision: models.ApprovalDecision, arguments: Json | None, reason: str | None
    ) -> models.ApprovalView:
        approval_id = self.view.get("approval_id")
        if approval_id is None:
            raise DragomanError(f"The call of {self.name} waits for a result, not for an approval.")
        return self._run._client.approvals.decide(approval_id, decision=decision, arguments=arguments, reason=reason)


class Thread:
    """A conversation: its messages, files and runs."""

    def __init__(self, client: Dragoman, view: models.ThreadView) -> None:
        self._client = client
        self.view = view
        self.id = view["id"]

    def start(self, **body: Unpack[models.RunBody]) -> Run:
        """Start a run on the thread."""
        body["thread_id"] = self.id
        return self._client.runs.start(**body)

    def messages(self) -> Iterator[models.MessageView]:
        """Oldest first."""
        return self._client.pages(f"/threads/{self.id}/messages")

    def append(self, content: str, *, role: Literal["user", "assistant"] = "user") -> models.MessageView:
        """Append a message without starting a run."""
        body = {"role": role, "content": content}
        return cast("models.MessageView", self._client.request("POST", f"/threads/{self.id}/messages", json=body))

    def upload(self, file: str | Path | bytes, *, name: str | None = None) -> models.SourceView:
        """Upload a file, or bytes under a `name`."""
        content = file if isinstance(file, bytes) else Path(file).read_bytes()
        name = name or ("" if isinstance(file, bytes) else Path(file).name)
        source = self._client.request(
            "POST", f"/threads/{self.id}/sources", params={"name": name}, content=content,
            headers={"Content-Type": "application/octet-stream"},
        )  # fmt: skip
        return cast("models.SourceView", source)

    def sources(self) -> Iterator[models.SourceView]:
        return self._client.pages(f"/threads/{self.id}/sources")

    def delete(self) -> None:
        self._client.request("DELETE", f"/threads/{self.id}")


class Runs:
    """Runs of agents."""

    def __init__(self, client: Dragoman) -> None:
        self._client = client

    def start(self, *, idempotency_key: str | None = None, **body: Unpack[models.RunBody]) -> Run:
        """Start a run. The same `idempotency_key` with the same body gives the same run for 24 hours; by default each call
        has its own key, so that a broken connection starts no second run."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        view = self._client.request("POST", "/runs", json=body, headers=headers, repeatable=True)
        return Run(self._client, view)

    def get(self, run_id: str) -> Run:
        return Run(self._client, self._client.request("GET", f"/runs/{run_id}"))

    def list(
        self, *, thread_id: str | None = None, agent_id: str | None = None, status: models.RunStatus | None = None
    ) -> Iterator[Run]:
        """Newest first."""
        for view in self._client.pages("/runs", thread_id=thread_id, agent_id=agent_id, status=status):
            yield Run(self._client, view)


class Threads:
    """Threads."""

    def __init__(self, client: Dragoman) -> None:
        self._client = client

    def create(self, metadata: Json | None = None) -> Thread:
        view = self._client.request("POST", "/threads", json={"metadata": metadata or {}})
        return Thread(self._client, view)

    def get(self, thread_id: str) -> Thread:
        return Thread(self._client, self._client.request("GET", f"/threads/{thread_id}"))

    def list(self) -> Iterator[Thread]:
        for view in self._client.pages("/threads"):
            yield Thread(self._client, view)


class Agents:
    """Agents, by id or name."""

    def __init__(self, client: Dragoman) -> None:
        self._client = client

    def create(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        return cast("models.SavedAgentView", self._client.request("POST", "/agents", json=body))

    def get(self, agent: str) -> models.AgentView:
        return cast("models.AgentView", self._client.request("GET", f"/agents/{_part(agent)}"))

    def update(self, agent: str, **changes: Unpack[models.UpdateAgentBody]) -> models.SavedAgentView:
        """Change the given fields."""
        saved = self._client.request("PATCH", f"/agents/{_part(agent)}", json=changes)
        return cast("models.SavedAgentView", saved)

    def apply(self, **body: Unpack[models.CreateAgentBody]) -> models.SavedAgentView:
        """Create the agent, or change the one of that name."""
        try:
            self.get(body["name"])
        except NotFound:
            return self.create(**body)
        return self.update(body["name"], **cast("models.UpdateAgentBody", body))

    def delete(self, agent: str) -> None:
        self._client.request("DELETE", f"/agents/{_part(agent)}")

    def list(self) -> Iterator[models.AgentView]:
        return self._client.pages("/agents")


class Servers:
    """MCP servers, by id or slug."""

    def __init__(self, client: Dragoman) -> None:
        self._client = client

    def create(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        return cast("models.McpServerView", self._client.request("POST", "/mcp-servers", json=body))

    def get(self, server: str) -> models.McpServerView:
        return cast("models.McpServerView", self._client.request("GET", f"/mcp-servers/{_part(server)}"))

    def update(self, server: str, **changes: Unpack[models.UpdateMcpServerBody]) -> models.McpServerView:
        """Change the given fields."""
        saved = self._client.request("PATCH", f"/mcp-servers/{_part(server)}", json=changes)
        return cast("models.McpServerView", saved)

    def apply(self, **body: Unpack[models.McpServerBody]) -> models.McpServerView:
        """Register the server, or change the one with that slug."""
        try:
            self.get(body["slug"])
        except NotFound:
            return self.create(**body)
        return self.update(body["slug"], **cast("models.UpdateMcpServerBody", body))

    def test(self, server: str) -> models.TestResultView:
        """Connect to the server and list its tools."""
        tested = self._client.request("POST", f"/mcp-servers/{_part(server)}/test")
        return cast("models.TestResultView", tested)

    def delete(self, server: str) -> None:
        self._client.request("DELETE", f"/mcp-servers/{_part(server)}")

    def list(self) -> Iterator[models.McpServerView]:
        return self._client.pages("/mcp-servers")


class Approvals:
    """Approvals of tool calls, of runs and of gateway sessions."""

    def __init__(self, client: Dragoman) -> None:
        self._client = client

    def decide(self, approval_id: str, **body: Unpack[models.DecisionBody]) -> models.ApprovalView:
        """Approve or deny a call, once."""
        decided = self._client.request("POST", f"/approvals/{approval_id}", json=body)
        return cast("models.ApprovalView", decided)

    def list(
        self, *, state: models.ApprovalState | None = None, run_id: str | None = None
    ) -> Iterator[models.ApprovalView]:
        """Newest first. `state="pending"` lists those that require a decision."""
        return self._client.pages("/approvals", state=state, run_id=run_id)


def _checked(response: httpx.Response) -> httpx.Response:
    """The response, unless it is an error."""
    if not response.is_error:
        return response
    try:
        problem = response.json()
    except ValueError:
        problem = None
    raise api_error(response.status_code, problem)


def _wait(response: httpx.Response, pause: float | None) -> float | None:
    """Seconds until a busy service is asked again; None if the response stays."""
    if pause is None or response.status_code not in _BUSY:
        return None
    told = response.headers.get("Retry-After", "0")
    wait_s = max(pause, float(told) if told.replace(".", "", 1).isdigit() else 0.0)
    return wait_s if wait_s <= _LONGEST_RETRY_AFTER_S else None


def _stated(values: Mapping[str, Any] | None) -> Json:
    return {name: value for name, value in (values or {}).items() if value is not None}


def _part(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
