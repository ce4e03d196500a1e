"""A run of an agent with servers that do not work among ones that do: what they cost, and how
often."""

import time

import pytest

from application.mcp.catalog_reader import DEFAULT_DEADLINE_S
from tests.e2e.service import SERVERS, Json, Service, a_turn, results_by_tool
from tests.integration.mcp.parts import ISOLATED_PYTHON, free_port

LATE_S = 25.0
"""What the rest of a run may take on a busy machine; less than another deadline."""
BROKEN = ("hanging", "crashing", "unreachable")


def seconds_of(service: Service) -> tuple[float, Json]:
    began = time.monotonic()
    answer = service.run("worker")
    return time.monotonic() - began, answer


def assert_the_sound_one_was_called(answer: Json) -> None:
    assert answer["run"]["status"] == "completed"
    results = results_by_tool(answer["messages"])
    assert results["mcp__sound__look"]["result"] == "look says still here"
    for slug in BROKEN:
        assert results[f"mcp__{slug}__anything"]["is_error"]


@pytest.mark.requirement("B3", "B5")
def test_a_hanging_a_crashing_and_an_unreachable_server_delay_the_first_run_by_their_deadline_and_no_other(
    service: Service,
) -> None:
    faulty = (*ISOLATED_PYTHON, str(SERVERS / "faulty_server.py"))
    service.server("hanging", *faulty, "silent")
    service.server("crashing", *faulty, "exits")
    address = f"http://127.0.0.1:{free_port()}/mcp"
    service.call("POST", "/mcp-servers", {"slug": "unreachable", "kind": "http", "url": address})
    service.watched_server("sound")
    calls: list[tuple[str, Json]] = [(f"mcp__{slug}__anything", {}) for slug in BROKEN]
    model = service.script("all", a_turn("All.", *calls, ("mcp__sound__look", {"text": "still here"})), a_turn("Done."))
    service.agent("worker", model, mcp_servers=[*BROKEN, "sound"])

    first_s, first = seconds_of(service)

    assert_the_sound_one_was_called(first)
    assert first_s < DEFAULT_DEADLINE_S + LATE_S
    for _ in range(3):
        again_s, again = seconds_of(service)
        assert_the_sound_one_was_called(again)
        assert again_s < LATE_S
    assert "Traceback" not in service.log.read_text(encoding="utf-8")
