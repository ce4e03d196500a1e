"""Clients that start runs and follow them to their ends while the database comes and goes, and what
must hold of all they saw."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.e2e.service import Json, Service, a_turn, assert_consistent, parts

AGENT = "worker-bee"
PATIENCE_S = 900.0
"""How long a run may take, whatever happens to its database."""
_PAUSE_S = 1.0
"""Before a refused request is repeated: what `Retry-After` says."""
_LOOK_EVERY_S = 2.0
_RECONNECT_S = 0.2
_STARTS_AT_ONCE = 32
"""So many that they get through while the database is up: hundreds at once would be cut by the next
outage, all of them."""
_WAIT_S = 20.0
_AT_ONCE_AFTERWARDS = 8

LOCAL_NOTE, LOCAL_LOOK, REMOTE_NOTE = "mcp__local__note", "mcp__local__look", "mcp__remote__note"
UNKNOWN = "outcome_unknown"
TOOL_CALLS = 7


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the clients met on their way. `complaints` is what may not happen; `refusals` counts
    answers 503, `cut` streams that ended early and were resumed."""

    refusals: int = 0
    cut: int = 0
    longest_s: float = 0.0
    complaints: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """All runs after their ends. `attempts` counts runs by how often they were taken up, `unknown`
    calls that were perhaps sent and of which nobody knows."""

    attempts: Counter[int] = field(default_factory=Counter)
    unknown: int = 0
    complaints: list[str] = field(default_factory=list)


def prepare(service: Service, logs: Path, remote_port: int) -> None:
    """An agent whose runs mix native tools and those of two servers, one over stdio and one over
    HTTP."""
    service.watched_server("local", trusted=True, isolation="shared", max_concurrency=64)
    (logs / "local.log").symlink_to(service.home / "local.log")
    url = f"http://127.0.0.1:{remote_port}/mcp"
    service.call("POST", "/mcp-servers", {"slug": "remote", "kind": "http", "url": url, "trusted": True})
    calculation = ("code_execution", {"code": "sum(range(100))"})
    first, second = {"text": "{{ user }} first"}, {"text": "{{ user }} second"}
    turns = (
        a_turn("Three at once.", (LOCAL_NOTE, first), (REMOTE_NOTE, first), calculation),
        a_turn("A look, and a note.", (LOCAL_LOOK, first), (REMOTE_NOTE, second)),
        a_turn("And once more.", (LOCAL_NOTE, second), calculation),
        a_turn("{{ user }} is done."),
    )
    model = service.script("busy", *turns)
    service.agent(AGENT, model, mcp_servers=["local", "remote"], tools=["code_execution"])


class Clients:
    """Each starts a run at one service and follows it at the next: by waiting, by streaming, or by
    asking. Where services are `restarted`, a request whose connection is lost is repeated at the
    next one."""

    def __init__(self, services: Sequence[Service], *, restarted: bool = False) -> None:
        self._restarted = restarted
        self._refused_with = {"storage_unavailable", *(("service_stopping",) if restarted else ())}
        self._urls = [f"{service.url}/v1" for service in services]
        self._headers = services[0].headers
        self.seen = Seen()
        self._deadline = time.monotonic() + PATIENCE_S
        self._begun = f"{time.time_ns()}"
        self._starts = asyncio.Semaphore(_STARTS_AT_ONCE)

    async def run(self, name: str, count: int, *, at_once: int) -> list[str]:
        """Start `count` runs and see them end; their ids."""
        places = asyncio.Semaphore(at_once)
        # A pool that closes what is idle may close a connection that it has just given to a request
        # (httpcore 1.0).
        limits = httpx.Limits(max_connections=at_once + 8, max_keepalive_connections=None, keepalive_expiry=None)
        async with httpx.AsyncClient(
            headers=self._headers, timeout=PATIENCE_S, limits=limits, trust_env=False
        ) as client:

            async def one(number: int) -> str:
                async with places:
                    return await self._client(client, f"{name} {number}", number)

            return await asyncio.gather(*(one(number) for number in range(count)))

    async def _client(self, client: httpx.AsyncClient, text: str, number: int) -> str:
        began = time.monotonic()
        url, other = (self._urls[(number + offset) % len(self._urls)] for offset in (0, 1))
        body = {"agent": AGENT, "input": text}
        key = {"Idempotency-Key": f"{self._begun}-{text}"}
        if number % 4 == 3:
            started = await self._insisting(client, "POST", f"{url}/runs/wait", json=body, headers=key)
            run_id, status = str(started["run"]["id"]), str(started["run"]["status"])
        else:
            async with self._starts:
                started = await self._insisting(client, "POST", f"{url}/runs", json=body, headers=key)
            run_id = str(started["id"])
            status = "queued"
        while status in {"queued", "in_progress"}:
            if time.monotonic() > self._deadline:
                self.seen.complaints.append(f"{run_id} is {status} after {PATIENCE_S:.0f} s")
                break
            match number % 4:
                case 0:
                    status = await self._streamed(client, (url, other), run_id)
                case 1:
                    path = f"{other}/runs/{run_id}/wait?timeout_s={_WAIT_S}"
                    status = str((await self._insisting(client, "GET", path))["run"]["status"])
                case _:
                    status = str((await self._insisting(client, "GET", f"{other}/runs/{run_id}"))["status"])
                    await asyncio.sleep(_LOOK_EVERY_S)
        self.seen.longest_s = max(self.seen.longest_s, time.monotonic() - began)
        return run_id

    async def _insisting(self, client: httpx.AsyncClient, method: str, url: str, **request: object) -> Json:
        """The answer, once there is one that is not 503."""
        while time.monotonic() < self._deadline:
            try:
                answer = await client.request(method, url, **request)  # type: ignore[arg-type]
            except httpx.TransportError as error:
                if self._restarted:
                    url = await self._elsewhere(url)
                else:
                    self.seen.complaints.append(f"{method} {url} was broken off: {error!r}")
                continue
            if answer.is_success:
                return dict(answer.json())
            if answer.status_code != 503:
                raise AssertionError(f"{method} {url}: {answer.status_code} {answer.text}")
            self._look_at_refusal(answer)
            await asyncio.sleep(_PAUSE_S)
        raise AssertionError(f"{method} {url} was refused until the end")

    async def _elsewhere(self, url: str) -> str:
        self.seen.cut += 1
        await asyncio.sleep(_RECONNECT_S)
        base = next(base for base in self._urls if url.startswith(base))
        following = self._urls[(self._urls.index(base) + 1) % len(self._urls)]
        return following + url.removeprefix(base)

    def _look_at_refusal(self, answer: httpx.Response) -> None:
        self.seen.refusals += 1
        told = (answer.headers.get("Content-Type"), answer.headers.get("Retry-After"), answer.json().get("code"))
        if told[0] != "application/problem+json" or not str(told[1]).isdigit() or told[2] not in self._refused_with:
            self.seen.complaints.append(f"{answer.request.url} was refused with {told}")

    async def _streamed(self, client: httpx.AsyncClient, urls: Sequence[str], run_id: str) -> str:
        """Follow the stream to its `end`, at the next service each time it is cut; the status it
        ends with."""
        last, attempt = 0, 0
        while time.monotonic() < self._deadline:
            url = f"{urls[attempt % len(urls)]}/runs/{run_id}/stream"
            attempt += 1
            try:
                ended, last = await self._followed(client, url, run_id, last)
            except httpx.ConnectError:
                if not self._restarted:
                    raise
                self.seen.cut += 1
                ended = None
            if ended is not None:
                return ended
            await asyncio.sleep(_PAUSE_S)
        return "in_progress"

    async def _followed(self, client: httpx.AsyncClient, url: str, run_id: str, last: int) -> tuple[str | None, int]:
        """One stream, after the event `last`: the status it ends with, if it does, and the last
        event it had."""
        async with client.stream("GET", url, headers={"Last-Event-ID": str(last)}) as answer:
            if answer.status_code == 503:
                await answer.aread()
                self._look_at_refusal(answer)
                return None, last
            if answer.status_code != 200:
                raise AssertionError(f"GET {url}: {answer.status_code} {await answer.aread()!r}")
            ended, last = await self._read(answer, run_id, last)
            self.seen.cut += ended is None
            return ended, last

    async def _read(self, answer: httpx.Response, run_id: str, last: int) -> tuple[str | None, int]:
        kind = ""
        try:
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    if int(value) != last + 1:
                        self.seen.complaints.append(f"{run_id}: event {value} follows {last} in its stream")
                    last = int(value)
                elif name == "data" and kind == "end":
                    return str(json.loads(value)["status"]), last
        except httpx.TransportError:
            pass
        return None, last


async def inspected(services: Sequence[Service], run_ids: Sequence[str], name: str, logs: Path) -> Outcome:
    """All runs as they are stored, held against the logs of the tool servers."""
    outcome, called = Outcome(), _calls(logs)
    outcome.complaints += [
        f"{call} was made {times} times" for call, times in called.items() if " note " in call and times > 1
    ]
    if len(set(run_ids)) != len(run_ids):
        outcome.complaints.append("two clients were given the same run")
    places = asyncio.Semaphore(_AT_ONCE_AFTERWARDS)

    async def look(number: int, run_id: str) -> None:
        service = services[number % len(services)]
        async with places:
            answer = await asyncio.to_thread(service.wait, run_id)
            events = await asyncio.to_thread(service.events, run_id)
        _inspect(outcome, answer, events, f"{name} {number}", called)

    await asyncio.gather(*(look(number, run_id) for number, run_id in enumerate(run_ids)))
    return outcome


def _calls(logs: Path) -> Counter[str]:
    lines = [
        f"{log.stem}: {line}" for log in logs.glob("*.log") for line in log.read_text(encoding="utf-8").splitlines()
    ]
    return Counter(line for line in lines if " called " in line)


def _inspect(outcome: Outcome, answer: Json, events: list[Json], text: str, called: Counter[str]) -> None:
    run, messages = answer["run"], answer["messages"]
    outcome.attempts[run["attempt"]] += 1
    if run["status"] != "completed" or run["output"] != f"{text} is done.":
        outcome.complaints.append(f"{run['id']} is {run['status']}: {run['error']} {run['output']}")
        return
    try:
        assert_consistent(messages, events)
    except (AssertionError, KeyError) as error:
        outcome.complaints.append(f"{run['id']} is not consistent: {error!r}")
    results = parts(messages, "tool_result")
    if len(results) != TOOL_CALLS:
        outcome.complaints.append(f"{run['id']} has {len(results)} results")
    for result in results:
        _inspect_result(outcome, run["id"], result, text, called)


def _inspect_result(outcome: Outcome, run_id: str, result: Json, text: str, called: Counter[str]) -> None:
    said = str(result["result"])
    if not result["is_error"]:
        server, _, tool = result["tool_name"].removeprefix("mcp__").partition("__")
        if tool and called[f"{server}: called {tool} {said.partition(' says ')[2]}"] == 0:
            outcome.complaints.append(f"{run_id} has a result of {result['tool_name']} that the server did not give")
        if tool and f" says {text} " not in said:
            outcome.complaints.append(f"{run_id} has the result of another run: {said}")
    elif "outcome" in said and "unknown" in said:
        outcome.unknown += 1
    else:
        outcome.complaints.append(f"{run_id}: {result['tool_name']} failed: {said[:200]}")
