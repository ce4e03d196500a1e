"""An agent started through the gateway by official clients of both generations: a real run, with
progress and a result."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.service import Service, a_turn, serving
from tests.e2e.test_gateway import text_of


def a_front(service: Service) -> Path:
    """An agent `front` that opens the agent `researcher`, which looks something up before it
    answers; its server's log."""
    log = service.watched_server("watched", trusted=True)
    turns = (a_turn("", ("mcp__watched__look", {"text": "here"})), a_turn("It says here."))
    service.agent("researcher", service.script("researcher", *turns), mcp_servers=["watched"], description="Looks.")
    service.agent("front", service.script("front", a_turn("Hello.")), agents=["researcher"])
    return log


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_official_client_starts_an_agent_follows_it_and_has_its_answer(tmp_path: Path, mode: str) -> None:
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    with serving(tmp_path / "home") as service:
        log = a_front(service)
        session = service.call("POST", "/gateway-sessions", {"agent_id": "front"})
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {session['token']}"}, timeout=60.0) as http,
            Client(streamable_http_client(session["url"], http_client=http), mode=mode) as client,
        ):
            [tool] = (await client.list_tools()).tools
            assert tool.name == "agent__researcher"
            answer = await client.call_tool(tool.name, {"input": "What does it say?"}, progress_callback=on_progress)
        assert (text_of(answer), answer.is_error) == ("It says here.", False)
        assert log.read_text().count("called look") == 1
        structured = answer.structured_content
        assert isinstance(structured, dict)
        run = service.call("GET", f"/runs/{structured['run_id']}")
        assert (run["status"], run["usage"]["turns"]) == ("completed", 2)
        assert structured["usage"] == run["usage"]
        assert told == [f"{run['id']} started", "turn 1", "calls mcp__watched__look", "turn 2"]
