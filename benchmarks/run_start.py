"""What servers add to the start of a run: from asking for the run to the first request to the
model, with none and with ten.

`python -m benchmarks.run_start` prints it; `make bench` does so too. The catalogs are warm, as a
service has them after its servers were listed once; their servers are registered, listed and not
called.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.counterparts import mcp_reply, model_answers
from benchmarks.figures import Budget, held
from benchmarks.raw_http import RawClient, response, serve
from benchmarks.service import Service, running_service

SERVERS = 10
TOOLS = 5
"""Of each server: all of them are shown to the model, which is more work than letting it search."""
RUNS = 100
"""Of each kind, in turns, so that both meet the same machine."""
WARM_UP = 20
_ADDED = Budget(what="what 10 warm servers add to the start of a run", limit=50, unit="ms")


class AskedModel:
    """A model that answers at once, and notes when it is asked."""

    def __init__(self) -> None:
        self._done = model_answers()[1]
        self.asked_at = 0.0
        self.sizes: list[int] = []

    def answer(self, head: bytes, body: bytes) -> bytes:
        """The same closing answer every time."""
        self.asked_at = time.perf_counter()
        self.sizes.append(len(body))
        return self._done


def list_of_tools(head: bytes, body: bytes) -> bytes:
    """An MCP server over streamable HTTP with some tools."""
    if not head.startswith(b"POST"):
        return response(b"", status="405 Method Not Allowed")
    reply = mcp_reply(body)
    if reply is None:
        return response(b"", status="202 Accepted")
    message = json.loads(reply)
    [tool] = message.get("result", {}).get("tools", [None])
    if tool is not None:
        message["result"]["tools"] = [{**tool, "name": f"echo_{number}"} for number in range(TOOLS)]
    return response(json.dumps(message).encode())


@asynccontextmanager
async def prepared(model: AskedModel) -> AsyncIterator[Service]:
    """A service with ten listed servers, an agent that has them all and one that has none."""
    async with await serve(model.answer) as model_server, await serve(list_of_tools) as mcp_server:
        model_port, mcp_port = (server.sockets[0].getsockname()[1] for server in (model_server, mcp_server))
        with running_service(
            {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1"}
        ) as service:
            slugs = [f"server-{number}" for number in range(SERVERS)]
            for slug in slugs:
                url = f"http://127.0.0.1:{mcp_port}/mcp"
                await asyncio.to_thread(service.post, "/mcp-servers", {"slug": slug, "kind": "http", "url": url})
                await asyncio.to_thread(service.post, f"/mcp-servers/{slug}/refresh", {})
            for name, servers in (("none", []), ("ten", slugs)):
                agent = {"name": name, "model": "openai:bench", "mcp_servers": servers}
                await asyncio.to_thread(service.post, "/agents", agent)
            yield service


async def start_ms(service: Service, client: RawClient, model: AskedModel, agent: str) -> float:
    """One run: milliseconds until the model was asked. Raises SystemExit if it does not
    complete."""
    body = json.dumps({"agent": agent, "input": "go"}).encode()
    began = time.perf_counter()
    status, answer = await client.post("/v1/runs/wait", body, f"Authorization: Bearer {service.key}\r\n")
    if status != 200 or json.loads(answer)["run"]["status"] != "completed":
        raise SystemExit(f"a run did not complete: {status} {answer[:500]!r}")
    return (model.asked_at - began) * 1000


async def measure() -> list[str]:
    """The lines of the report. Raises SystemExit if the servers' tools do not reach the model."""
    model = AskedModel()
    times: dict[str, list[float]] = {"none": [], "ten": []}
    async with prepared(model) as service:
        client = RawClient(service.port)
        for number in range(WARM_UP + RUNS):
            for agent, taken in times.items():
                took_ms = await start_ms(service, client, model, agent)
                if number >= WARM_UP:
                    taken.append(took_ms)
        await client.close()
    if model.sizes[-1] < model.sizes[-2] + SERVERS * TOOLS * 50:
        raise SystemExit(f"the tools of the servers are not in the request: {model.sizes[-2:]}")
    none, ten = (statistics.median(times[agent]) for agent in ("none", "ten"))
    slowest = [statistics.quantiles(times[agent], n=100)[98] for agent in ("none", "ten")]
    return [
        f"From `POST /v1/runs/wait` to the first request to the model, median of {RUNS} runs (99th percentile): without "
        f"servers {none:.1f} ms ({slowest[0]:.1f}),",
        f"with {SERVERS} registered servers of {TOOLS} tools each, their catalogs warm, {ten:.1f} ms ({slowest[1]:.1f}): "
        f"they add {ten - none:.1f} ms.",
        *held((_ADDED, ten - none)),
    ]


if __name__ == "__main__":
    print("\n".join(asyncio.run(measure())))
