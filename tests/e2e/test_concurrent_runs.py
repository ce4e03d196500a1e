"""Two hundred runs at a time on one process: none loses an event, none leaves a call without its
result."""

import asyncio
import sys
from pathlib import Path

import httpx
import pytest
from httpx_aiohttp import AiohttpTransport

from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, a_turn, assert_consistent, parts, serving

RUNS = 200
PATIENT = {"tool_timeout_s": 150, "turn_tool_timeout_s": 150}
"""Calls wait for each other, on a busy machine for long."""


async def ended(client: httpx.AsyncClient, number: int) -> tuple[Json, list[Json]]:
    """Starts one run and follows it to its end: every third by waiting, streaming, or in the
    background."""
    body = {"agent": ("caller", "calculator")[number % 2], "input": f"number {number}"}
    match number % 3:
        case 0:
            run_id = (await client.post("/runs/wait", json=body)).raise_for_status().json()["run"]["id"]
        case 1:
            async with client.stream("POST", "/runs/stream", json=body) as response:
                run_id = response.headers["Location"].rpartition("/")[2]
                text = "".join([piece async for piece in response.aiter_text()])
                assert text.endswith('event: end\ndata: {"type":"end","status":"completed"}\n\n')
        case _:
            run_id = (await client.post("/runs", json=body)).raise_for_status().json()["id"]
    answer = (await client.get(f"/runs/{run_id}/wait")).raise_for_status().json()
    events = (await client.get(f"/runs/{run_id}/events", params={"limit": 100})).raise_for_status().json()
    assert events["next_cursor"] is None
    return answer, events["data"]


@pytest.mark.requirement("A4", "B15", "E1", "E2", "E6")
@pytest.mark.timeout(400)
async def test_two_hundred_concurrent_runs_end_gapless_and_with_every_call_answered_once(tmp_path: Path) -> None:
    with serving(tmp_path / "home", DRAGOMAN_WORKER_CONCURRENCY=str(RUNS)) as service:
        log = tmp_path / "home" / "shared.log"
        watched = (*ISOLATED_PYTHON, str(SERVERS / "watched_server.py"), str(log))
        service.server("shared", *watched, isolation="shared", max_concurrency=64, timeout_s=150)
        service.server(
            "clock", sys.executable, "-m", "mcp_server_time", isolation="shared", max_concurrency=64, timeout_s=150
        )
        look = ("mcp__shared__look", {"text": "{{ user }}"})
        service.agent(
            "caller",
            service.script("caller", a_turn("Twice.", look, look), a_turn("Once.", look), a_turn("{{ results.last }}")),
            mcp_servers=["shared"],
            limits=PATIENT,
        )
        calculation = ("code_execution", {"code": "sum(range(100))"})
        now = ("mcp__clock__get_current_time", {"timezone": "UTC"})
        service.agent(
            "calculator",
            service.script("calculator", a_turn("Both.", look, calculation, now), a_turn("{{ user }}")),
            tools=["code_execution"],
            mcp_servers=["shared", "clock"],
            limits=PATIENT,
        )
        # Over aiohttp: httpx's own pool looks through all of its connections for each request,
        # which takes longer than the runs.
        limits = httpx.Limits(max_connections=RUNS, max_keepalive_connections=RUNS)
        async with httpx.AsyncClient(
            transport=AiohttpTransport(limits=limits),
            base_url=service.client.base_url,
            headers=service.headers,
            timeout=300,
            trust_env=False,
        ) as client:
            answers = await asyncio.gather(*(ended(client, number) for number in range(RUNS)))
        for number, (answer, events) in enumerate(answers):
            run, messages = answer["run"], answer["messages"]
            assert run["status"] == "completed", run
            assert run["usage"]["tool_calls"] == 3
            assert_consistent(messages, events)
            results = parts(messages, "tool_result")
            assert len(results) == 3
            assert not [result for result in results if result["is_error"]]
            # Nobody got another run's answer.
            looks = [result["result"] for result in results if result["tool_name"] == "mcp__shared__look"]
            assert looks
            assert set(looks) == {f"look says number {number}"}
            settled = [event for event in events if event["type"] == "tool.executed"]
            assert len(settled) == 3
        lines = log.read_text().splitlines()
        assert lines.count("started") == 1  # one process for all of them
        assert sum(line.startswith("called look") for line in lines) == RUNS // 2 * 4
