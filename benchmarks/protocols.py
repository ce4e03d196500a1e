"""What the protocols of front ends and other agents add to a run: CPU of the service beside the
same run streamed by `/v1`.

`python -m benchmarks.protocols` prints it; `make bench` does so too.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

from benchmarks.figures import Budget, held
from benchmarks.processes import counterpart
from benchmarks.service import Service, running_service
from benchmarks.upstreams import UPSTREAMS

TOOL_CALLS = 3
AGENTS = {"bare": 0, "calls": TOOL_CALLS}
"""By the tool calls that a run of each makes."""
ROUNDS, RUNS, WARM_UP = 24, 10, 30
"""In each round so many runs over each protocol, one protocol after the other: all meet the same
machine."""
ALLOWED = 1.15
ABOUT = (
    "What the protocols of front ends and other agents add to a run: CPU of the service's process for a streamed run on a new thread, "
    f"beside the same run by `/v1/runs/stream`. {ROUNDS * RUNS} runs of each, one after the other, in {ROUNDS} rounds of {RUNS}, one "
    "protocol after the other in each: all meet the same machine."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How a client asks for a streamed run of an agent: `body` has a number that is new for each
    run. `ended` is in every stream of a run that has completed."""

    title: str
    path: str
    body: Callable[[str, int], Mapping[str, object]]
    ended: bytes
    headers: str = ""


def _ai_sdk(agent: str, number: int) -> Mapping[str, object]:
    said = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    return {"id": f"chat{number}", "messages": [said], "trigger": "submit-message"}


def _ag_ui(agent: str, number: int) -> Mapping[str, object]:
    said = {"id": f"m{number}", "role": "user", "content": "go"}
    empty: Mapping[str, object] = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return {"threadId": f"thread{number}", "runId": f"run{number}", "messages": [said], **empty}


def _a2a(agent: str, number: int) -> Mapping[str, object]:
    said = {"messageId": f"m{number}", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    return {"jsonrpc": "2.0", "id": number, "method": "SendStreamingMessage", "params": {"message": said}}


NATIVE = Protocol(
    title="`/v1/runs/stream`",
    path="/v1/runs/stream",
    body=lambda agent, _: {"agent": agent, "input": "go"},
    ended=b'"status":"completed"',
)
OTHERS = (
    Protocol(
        title="Responses",
        path="/openai/v1/responses",
        body=lambda agent, _: {"model": agent, "input": "go", "stream": True},
        ended=b"response.completed",
    ),
    Protocol(
        title="chat completions",
        path="/openai/v1/chat/completions",
        body=lambda agent, _: {"model": agent, "messages": [{"role": "user", "content": "go"}], "stream": True},
        ended=b'"finish_reason":"stop"',
    ),
    Protocol(title="AI SDK", path="/ai-sdk/v1/{agent}/chat", body=_ai_sdk, ended=b'"finishReason":"stop"'),
    Protocol(title="AG-UI", path="/ag-ui/v1/{agent}", body=_ag_ui, ended=b'"RUN_FINISHED"'),
    Protocol(
        title="A2A",
        path="/a2a/v1/{agent}",
        body=_a2a,
        ended=b"TASK_STATE_COMPLETED",
        headers="A2A-Version: 1.0\r\n",
    ),
)


class StreamClient:
    """One kept connection; reads an answer in chunks to its end."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._numbers = count()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, protocol: Protocol, agent: str) -> None:
        """One run. Raises SystemExit if it does not complete."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._service.port)
        reader, writer = self._streams
        body = json.dumps(protocol.body(agent, next(self._numbers))).encode()
        head = (
            f"POST {protocol.path.format(agent=agent)} HTTP/1.1\r\nHost: 127.0.0.1:{self._service.port}\r\n"
            f"Authorization: Bearer {self._service.key}\r\nContent-Type: application/json\r\n"
            f"{protocol.headers}Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        told = await reader.readuntil(b"\r\n\r\n")
        if not told.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{protocol.title} answered {told!r}")
        answer = await self._chunks(reader)
        if protocol.ended not in answer:
            raise SystemExit(f"{protocol.title} did not complete a run: {answer[-600:]!r}")

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        chunks: list[bytes] = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            chunks.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return b"".join(chunks)

    async def close(self) -> None:
        """Give the connection back."""
        if self._streams is not None:
            self._streams[1].close()
            await self._streams[1].wait_closed()


async def _spent_s(service: Service, client: StreamClient, protocol: Protocol, agent: str, runs: int) -> float:
    before = service.exact_cpu_s()
    for _ in range(runs):
        await client.run(protocol, agent)
    return service.exact_cpu_s() - before


async def _cpu_ms(service: Service) -> dict[tuple[str, str], float]:
    """Per run, by protocol and agent."""
    client = StreamClient(service)
    cases = [(protocol, agent) for agent in AGENTS for protocol in (NATIVE, *OTHERS)]
    total = {(protocol.title, agent): 0.0 for protocol, agent in cases}
    for protocol, agent in cases:
        await _spent_s(service, client, protocol, agent, WARM_UP)
    for _ in range(ROUNDS):
        for protocol, agent in cases:
            total[protocol.title, agent] += await _spent_s(service, client, protocol, agent, RUNS)
    await client.close()
    return {case: cpu_s * 1000 / (ROUNDS * RUNS) for case, cpu_s in total.items()}


def _prepared(stack: ExitStack) -> Service:
    """A service with both agents."""
    model = stack.enter_context(counterpart("model", "1"))
    port = stack.enter_context(counterpart("mcp-modern"))
    extra = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1"}
    service = stack.enter_context(running_service(extra))
    [modern] = [upstream for upstream in UPSTREAMS if upstream.slug == "modern"]
    service.post("/mcp-servers", modern.config(port))
    for name, calls in AGENTS.items():
        service.post("/agents", {"name": name, "model": f"openai:calls-{calls}-modern", "mcp_servers": ["modern"]})
    return service


def report() -> list[str]:
    """The lines of the report."""
    with ExitStack() as stack:
        service = _prepared(stack)
        cpu_ms = asyncio.run(_cpu_ms(service))
    ratios = {case: cost / cpu_ms[NATIVE.title, case[1]] for case, cost in cpu_ms.items()}
    rows = [
        f"| {each.title} | {cpu_ms[each.title, 'bare']:.2f} | {ratios[each.title, 'bare']:.2f} "
        f"| {cpu_ms[each.title, 'calls']:.2f} | {ratios[each.title, 'calls']:.2f} |"
        for each in (NATIVE, *OTHERS)
    ]
    budgets = [
        (
            Budget(what=f"CPU of a run over {each.title}, {said}", limit=ALLOWED, unit="of `/v1`'s"),
            ratios[each.title, agent],
        )
        for each in OTHERS
        for agent, said in (("bare", "a bare turn"), ("calls", f"{TOOL_CALLS} tool calls"))
    ]
    return [
        f"| streamed run | CPU ms, a bare turn | of `/v1`'s | CPU ms, {TOOL_CALLS} tool calls | of `/v1`'s |",
        "|---|---|---|---|---|",
        *rows,
        *held(*budgets),
    ]


if __name__ == "__main__":
    print("\n".join(report()))
