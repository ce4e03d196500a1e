"""The runs that are killed at their boundaries. The first is in the middle of a call when the
second takes its place on the thread: native and MCP tools side by side, an approval, a displayed
call, streamed text."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from chaos.deadly import Boundaries, lines_of, watch_over
from infrastructure.container import Container
from infrastructure.settings import Settings, load_settings
from interfaces.asgi import create_app
from interfaces.cli.asgi_transport import StreamingAsgiTransport
from interfaces.service import running
from interfaces.worker.process import working

Json = dict[str, Any]
SERVER = Path(__file__).resolve().parents[1] / "tests" / "e2e" / "servers" / "watched_server.py"
PREFIX = "mcp__watched__"
UNSAFE = frozenset({"note", "held_note"})
CODE = "6 * 7"
ANSWER = "Everything is done, and here is what I have to say about it at some length."
TOKENS = {"input_tokens": 100, "output_tokens": 10}
TURNS = 4
CALLS = ("look one", "put two", "note three", f"code_execution {CODE}", "held_note four", "look five")
"""The second run's, as they stand in the log once each was called."""
INTERRUPTED = "held_note zero"
"""The first run's, which nobody ever answers."""
_FOREIGN = ("DRAGOMAN_", "OPENAI_", "ANTHROPIC_", "LANGFUSE_", "OTEL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the scenario happens. `database_url` None is SQLite in HOME."""

    folder: Path
    database_url: str | None = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> Path:
        """What the tool server and the native tools were called with."""
        return self.folder / "calls.log"

    @property
    def trace(self) -> Path:
        return self.folder / "trace.log"

    def settings(self) -> Settings:
        """Read as any process of Dragoman reads them, from an environment that nobody else has a
        say in."""
        # The server writes its log beside HOME, and reads a gate there.
        chosen = {"DRAGOMAN_HOME": str(self.home), "DRAGOMAN_LOG_LEVEL": "error", "DRAGOMAN_MCP_SANDBOX": "off"}
        if self.database_url is not None:
            chosen |= {"DRAGOMAN_DATABASE_URL": self.database_url, "DRAGOMAN_SECRET_KEY": "a-passphrase-for-all"}
        with patch.dict(os.environ):
            for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
                del os.environ[name]
            os.environ.update(chosen)
            return load_settings()


@asynccontextmanager
async def service(
    place: Place, boundaries: Boundaries | None = None, *, worker: bool = True
) -> AsyncIterator[httpx.AsyncClient]:
    """`dragoman serve` without its port."""
    container = Container(settings=place.settings())
    watch_over(container, place.log, boundaries)
    async with running(container, worker=worker):
        client = httpx.AsyncClient(
            transport=StreamingAsgiTransport(create_app(container)),
            base_url="http://in-process/v1",
            headers={"Authorization": f"Bearer {container.home().read_admin_key()}"},
            timeout=60,
        )
        async with client:
            yield client


@asynccontextmanager
async def worker(place: Place, boundaries: Boundaries | None = None, *, successor: bool = False) -> AsyncIterator[None]:
    """`dragoman worker`. A `successor` knows that the worker before it is dead, and need not wait
    for its leases to lapse."""
    container = Container(settings=place.settings())
    watch_over(container, place.log, boundaries)
    async with working(container):
        if successor:
            await container.recover_runs().execute(sole_owner=True)
        yield


async def set_up(client: httpx.AsyncClient, place: Place) -> None:
    """The tool server and the agent."""
    command = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(place.log)]}
    await answer(client, "POST", "/mcp-servers", {"slug": "watched", "kind": "custom", "trusted": True, **command})
    await answer(client, "POST", "/mcp-servers/watched/refresh")
    scripts = place.home / "scripted"
    scripts.mkdir(exist_ok=True)
    (scripts / "steps.yaml").write_text(json.dumps(_script(place)), encoding="utf-8")
    waits = {"tool": f"{PREFIX}held_note", "arguments": {"text": "zero", "gate": str(place.folder / "never")}}
    waiting = {"turns": [{"text": "I wait.", "calls": [waits]}, {"text": "I waited."}], "usage": TOKENS}
    (scripts / "waiting.yaml").write_text(json.dumps(waiting), encoding="utf-8")
    await answer(
        client, "POST", "/agents", {"name": "waiter", "model": "scripted:waiting.yaml", "mcp_servers": ["watched"]}
    )
    agent = {
        "name": "stepper",
        "model": "scripted:steps.yaml",
        "tools": ["code_execution", "send_email"],
        "mcp_servers": ["watched"],
        "tool_policies": {f"{PREFIX}held_note": {"decision": "require_approval"}},
    }
    await answer(client, "POST", "/agents", agent)


def _script(place: Place) -> Json:
    def call(tool: str, **arguments: str) -> Json:
        return {"tool": tool, "arguments": arguments}

    email = call("send_email", subject="Done", body="It is.", to="a@example.com")
    turns = [
        {
            "text": "I begin with four things at once.",
            "calls": [
                call(f"{PREFIX}look", text="one"),
                call(f"{PREFIX}put", text="two"),
                call(f"{PREFIX}note", text="three"),
                call("code_execution", code=CODE),
            ],
        },
        {"text": "This I may not do alone.", "calls": [call(f"{PREFIX}held_note", text="four", gate=str(place.home))]},
        {"text": "", "calls": [call(f"{PREFIX}look", text="five"), email]},
        {"text": ANSWER},
    ]
    return {"turns": turns, "usage": TOKENS, "delay_ms": 25, "chunk_chars": 12}


def first_key(key: str) -> str:
    """The idempotency key of the first run, where `key` is the second's."""
    return f"{key}-first"


async def drive(client: httpx.AsyncClient, place: Place, key: str) -> tuple[str, str]:
    """Start the runs, or find those that this key started before, and see to them until they have
    ended; their ids."""
    body = {"agent": "waiter", "input": "Wait."}
    first = await answer(client, "POST", "/runs", body, headers={"Idempotency-Key": first_key(key)})
    while first["status"] in ("queued", "in_progress") and f"called {INTERRUPTED}" not in lines_of(place.log):
        await asyncio.sleep(0.01)
        first = await answer(client, "GET", f"/runs/{first['id']}")
    body = {"agent": "stepper", "input": "Go.", "multitask_strategy": "interrupt"}
    path = f"/threads/{first['thread_id']}/runs"
    run = await answer(client, "POST", path, body, headers={"Idempotency-Key": key})
    path = f"/runs/{run['id']}"
    while run["status"] in ("queued", "in_progress", "requires_action"):
        run = (await answer(client, "GET", f"{path}/wait?timeout_s=30"))["run"]
        if run["status"] != "requires_action":
            continue
        if any(use["name"] == "send_email" for use in run["pending"]):
            results = [{"tool_call_id": use["id"], "result": "sent"} for use in run["pending"]]
            await answer(client, "POST", f"{path}/resume", {"tool_results": results})
        else:
            decisions = [{"tool_call_id": use["id"], "decision": "approve"} for use in run["pending"]]
            await answer(client, "POST", f"{path}/resume", {"approvals": decisions})
    return str(first["id"]), str(run["id"])


async def answer(
    client: httpx.AsyncClient, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Json:
    """One request that must succeed."""
    response = await client.request(method, path, json=body, headers=headers)
    assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
    return dict(response.json())
