"""The asynchronous client. `sync.py` is made from this file by `make clients`; change this one."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, Self, Unpack, cast
from uuid import uuid4

import anyio
import httpx

from dragoman_client import models
from dragoman_client.aio_agents import AsyncAgents, AsyncServers, part
from dragoman_client.aio_connection import AsyncConnection, Json
from dragoman_client.errors import DragomanError

_UNFINISHED = frozenset({"queued", "in_progress"})
_OPEN = _UNFINISHED | {"requires_action"}
_ONE_WAIT_S = 30.0


class AsyncRun:
    """A run as it was last seen. `view` is the whole of it, `messages` are those it wrote (after
    `wait`)."""

    def __init__(self, client: AsyncConnection, view: models.RunView) -> None:
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
    def pending(self) -> list["AsyncCall"]:
        """The tool calls that the run waits for."""
        return [AsyncCall(self, call) for call in self.view["pending"]]

    async def refresh(self) -> Self:
        """Read the run again."""
        self.view = await self._client.request("GET", f"/runs/{self.id}")
        return self

    async def wait(self, timeout_s: float | None = None) -> Self:
        """Until the run has ended or requires action, or `timeout_s` is over: see `status`."""
        ends_at = None if timeout_s is None else anyio.current_time() + timeout_s
        while True:
            left_s = _ONE_WAIT_S if ends_at is None else max(0.0, min(_ONE_WAIT_S, ends_at - anyio.current_time()))
            seen = await self._client.request("GET", f"/runs/{self.id}/wait", params={"timeout_s": left_s})
            self.view, self.messages = seen["run"], seen["messages"]
            if self.status not in _UNFINISHED or (ends_at is not None and anyio.current_time() >= ends_at):
                return self

    def stream(self, after: int | None = None) -> AsyncIterator[models.RunEventView]:
        """The events of the run, each exactly once, until it has ended or waits for something that
        is not settled in the loop. Reconnects by itself. A later call continues after the last
        event, or after the event numbered `after`."""
        return _events(self, f"/runs/{self.id}/stream", after)

    async def retry(self) -> "AsyncRun":
        """The run that continues this failed one, from its last stored step."""
        path, headers = f"/runs/{self.id}/retry", {"Idempotency-Key": str(uuid4())}
        return AsyncRun(self._client, await self._client.request("POST", path, headers=headers, repeatable=True))

    async def cancel(self) -> Self:
        """Ask the run to stop."""
        self.view = await self._client.request("POST", f"/runs/{self.id}/cancel", repeatable=True)
        return self

    async def resume(self, **body: Unpack[models.ResumeRunBody]) -> Self:
        """Give results and decisions for several pending calls at once."""
        self.view = await self._client.request("POST", f"/runs/{self.id}/resume", json=body)
        return self


class AsyncWorkflowRun:
    """A run of a workflow as it was last seen. `view` is the whole of it, with its nodes."""

    def __init__(self, client: AsyncConnection, view: models.WorkflowRunView) -> None:
        self._client = client
        self._last_seq = 0
        self.view = view

    @property
    def id(self) -> str:
        return self.view["id"]

    @property
    def status(self) -> models.WorkflowRunStatus:
        return self.view["status"]

    @property
    def output(self) -> Any:
        """Output of the graph's only sink; with several sinks, an object by node id."""
        return self.view["output"]

    @property
    def pending(self) -> list[models.PendingView]:
        """The nodes that wait for people."""
        return self.view["pending"]

    async def refresh(self) -> Self:
        """Read the run again."""
        self.view = await self._client.request("GET", f"/workflow-runs/{self.id}")
        return self

    async def wait(self) -> Self:
        """Until the run has ended or waits for people: see `status`."""
        last_seq = self._last_seq
        async for _ in self.stream():
            pass
        self._last_seq = last_seq
        return self

    def stream(self, after: int | None = None) -> AsyncIterator[models.WorkflowStreamItem]:
        """The events of the run, as for runs of agents."""
        return _events(self, f"/workflow-runs/{self.id}/stream", after)

    async def cancel(self) -> Self:
        """Ask the run, and the runs of its agents, to stop."""
        self.view = await self._client.request("POST", f"/workflow-runs/{self.id}/cancel", repeatable=True)
        return self

    async def answer(self, node_id: str, answer: object) -> Self:
        """The answer of a person to a node that waits."""
        return await self.resume(answers=[{"node_id": node_id, "answer": answer}])

    async def resume(self, **body: Unpack[models.ResumeWorkflowRunBody]) -> Self:
        """Give answers to several nodes, or results and decisions to the run of an agent node."""
        self.view = await self._client.request("POST", f"/workflow-runs/{self.id}/resume", json=body)
        return self


class AsyncCall:
    """A pending tool call: `approve` or `deny` it, give its `result` (client tools), or `answer`
    its server's question."""

    def __init__(self, run: AsyncRun, view: models.ToolUseView) -> None:
        self._run = run
        self.view = view
        self.id, self.name, self.params = view["id"], view["name"], view["params"]
        self.reason, self.elicitation = view.get("reason"), view.get("elicitation")

    async def approve(self, *, arguments: Json | None = None, reason: str | None = None) -> models.ApprovalView:
        """Let the call be executed, with other arguments if they are given."""
        return await self._decide("approve", arguments, reason)

    async def deny(self, reason: str | None = None) -> models.ApprovalView:
        """The model gets the reason instead of a result."""
        return await self._decide("deny", None, reason)

    async def result(self, result: object, *, is_error: bool = False) -> AsyncRun:
        """The result of a client tool."""
        return await self._run.resume(tool_results=[{"tool_call_id": self.id, "result": result, "is_error": is_error}])

    async def answer(self, content: Json) -> AsyncRun:
        """Accept the question of the call's MCP server."""
        return await self.result({"action": "accept", "content": content})

    async def decline(self) -> AsyncRun:
        """Decline the question of the call's MCP server."""
        return await self.result({"action": "decline"})

    async def _decide(
        self, decision: models.ApprovalDecision, arguments: Json | None, reason: str | None
    ) -> models.ApprovalView:
        approval_id = self.view.get("approval_id")
        if approval_id is None:
            raise DragomanError(f"The call of {self.name} waits for a result, not for an approval.")
        approvals = AsyncApprovals(self._run._client)
        return await approvals.decide(approval_id, decision=decision, arguments=arguments, reason=reason)


class AsyncThread:
    """A conversation: its messages, files and runs."""

    def __init__(self, client: AsyncConnection, view: models.ThreadView) -> None:
        self._client = client
        self.view = view
        self.id = view["id"]

    async def start(self, **body: Unpack[models.RunBody]) -> AsyncRun:
        """Start a run on the thread."""
        body["thread_id"] = self.id
        return await AsyncRuns(self._client).start(**body)

    def messages(self) -> AsyncIterator[models.MessageView]:
        """Oldest first."""
        return self._client.pages(f"/threads/{self.id}/messages")

    async def append(self, content: str, *, role: Literal["user", "assistant"] = "user") -> models.MessageView:
        """Append a message without starting a run."""
        body = {"role": role, "content": content}
        return cast("models.MessageView", await self._client.request("POST", f"/threads/{self.id}/messages", json=body))

    async def upload(self, file: str | Path | bytes, *, name: str | None = None) -> models.SourceView:
        """Upload a file, or bytes under a `name`."""
        content = file if isinstance(file, bytes) else await anyio.Path(file).read_bytes()
        name = name or ("" if isinstance(file, bytes) else Path(file).name)
        source = await self._client.request(
            "POST", f"/threads/{self.id}/sources", params={"name": name}, content=content,
            headers={"Content-Type": "application/octet-stream"},
        )  # fmt: skip
        return cast("models.SourceView", source)

    def sources(self) -> AsyncIterator[models.SourceView]:
        return self._client.pages(f"/threads/{self.id}/sources")

    async def delete(self) -> None:
        await self._client.request("DELETE", f"/threads/{self.id}")


class AsyncRuns:
    """Runs of agents."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def start(self, *, idempotency_key: str | None = None, **body: Unpack[models.RunBody]) -> AsyncRun:
        """Start a run. The same `idempotency_key` with the same body gives the same run for 24
        hours; by default each call has its own key, so that a broken connection starts no second
        run."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        view = await self._client.request("POST", "/runs", json=body, headers=headers, repeatable=True)
        return AsyncRun(self._client, view)

    async def get(self, run_id: str) -> AsyncRun:
        return AsyncRun(self._client, await self._client.request("GET", f"/runs/{run_id}"))

    async def list(
        self, *, thread_id: str | None = None, agent_id: str | None = None, status: models.RunStatus | None = None
    ) -> AsyncIterator[AsyncRun]:
        """Newest first."""
        async for view in self._client.pages("/runs", thread_id=thread_id, agent_id=agent_id, status=status):
            yield AsyncRun(self._client, view)


class AsyncWorkflowRuns:
    """Runs of workflows."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def start(
        self, workflow: str, *, input: object = None, idempotency_key: str | None = None
    ) -> AsyncWorkflowRun:
        """Start a run of a workflow, by its name or id, with any JSON value as input. Keys are as
        for runs of agents."""
        path, headers = f"/workflows/{part(workflow)}/runs", {"Idempotency-Key": idempotency_key or str(uuid4())}
        view = await self._client.request("POST", path, json={"input": input}, headers=headers, repeatable=True)
        return AsyncWorkflowRun(self._client, view)

    async def get(self, run_id: str) -> AsyncWorkflowRun:
        return AsyncWorkflowRun(self._client, await self._client.request("GET", f"/workflow-runs/{run_id}"))

    def list(
        self, *, workflow_id: str | None = None, status: models.WorkflowRunStatus | None = None
    ) -> AsyncIterator[models.WorkflowRunOutlineView]:
        """Newest first."""
        return self._client.pages("/workflow-runs", workflow_id=workflow_id, status=status)


class AsyncThreads:
    """Threads."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def create(self, metadata: Json | None = None) -> AsyncThread:
        view = await self._client.request("POST", "/threads", json={"metadata": metadata or {}})
        return AsyncThread(self._client, view)

    async def get(self, thread_id: str) -> AsyncThread:
        return AsyncThread(self._client, await self._client.request("GET", f"/threads/{thread_id}"))

    async def list(self) -> AsyncIterator[AsyncThread]:
        async for view in self._client.pages("/threads"):
            yield AsyncThread(self._client, view)


class AsyncApprovals:
    """Approvals of tool calls, of runs and of gateway sessions."""

    def __init__(self, client: AsyncConnection) -> None:
        self._client = client

    async def decide(self, approval_id: str, **body: Unpack[models.DecisionBody]) -> models.ApprovalView:
        """Approve or deny a call, once."""
        decided = await self._client.request("POST", f"/approvals/{approval_id}", json=body)
        return cast("models.ApprovalView", decided)

    def list(
        self, *, state: models.ApprovalState | None = None, run_id: str | None = None
    ) -> AsyncIterator[models.ApprovalView]:
        """Newest first. `state="pending"` lists those that require a decision."""
        return self._client.pages("/approvals", state=state, run_id=run_id)


class AsyncDragoman(AsyncConnection):
    """A connection to a service. `url` and `api_key` are those in DRAGOMAN_URL and DRAGOMAN_API_KEY
    by default.

    - What is safe to repeat is repeated up to `retries` times when the connection breaks or the
      service is busy: reads, and starts of runs, which carry an idempotency key. Everything else is
      repeated only if it was never sent.
    - Raises ApiError (by status: NotFound, Conflict, …) for what the service rejects,
      ConnectionLost after retries.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        retries: int = 6,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(url, api_key, timeout_s=timeout_s, retries=retries, http=http)
        self.agents = AsyncAgents(self)
        self.servers = AsyncServers(self)
        self.threads = AsyncThreads(self)
        self.runs = AsyncRuns(self)
        self.workflow_runs = AsyncWorkflowRuns(self)
        self.approvals = AsyncApprovals(self)


async def _events(run: AsyncRun | AsyncWorkflowRun, path: str, after: int | None) -> AsyncIterator[Any]:
    """A stream ends where the run waits. It is opened again if the run has moved on since: so ended
    is what it was then."""
    run._last_seq = run._last_seq if after is None else after
    waits_for: set[str] = set()
    while True:
        began, ended = run._last_seq, ""
        async with aclosing(run._client.follow(path, run._last_seq)) as events:
            async for event in events:
                if event["type"] == "end":
                    ended = event["status"]
                    break
                run._last_seq = event["seq"]
                if event["type"].endswith(".requires_action"):
                    waits_for = _ids(event["pending"])
                    run.view = cast("Any", {**run.view, "status": "requires_action", "pending": event["pending"]})
                yield event
        await run.refresh()
        waits = run.status == "requires_action" and (run._last_seq == began or _ids(run.view["pending"]) <= waits_for)
        if waits or ended not in _OPEN:
            return


def _ids(pending: Iterable[Mapping[str, Any]]) -> set[str]:
    return {waiting.get("node_id") or waiting["id"] for waiting in pending}
