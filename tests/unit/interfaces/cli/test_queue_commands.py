"""`dragoman queue`."""

import pytest

from domain.json_value import JsonObject
from tests.unit.interfaces.cli.fake_service import FakeService

LINE: JsonObject = {
    "organization_id": "org_1",
    "agent_id": "agt_1",
    "lane": "batch",
    "queued": 7,
    "running": 2,
    "oldest_queued_at": "2026-01-01T12:00:00Z",
}
QUEUE: JsonObject = {"queued": 7, "running": 2, "oldest_queued_at": "2026-01-01T12:00:00Z", "lines": [LINE]}


@pytest.mark.requirement("K8")
def test_the_lines_of_the_queue_are_a_table() -> None:
    service = FakeService().on("GET", "/v1/queue", QUEUE)
    service.on("GET", "/v1/agents", {"data": [], "next_cursor": None})
    outcome = service.run("queue", "show")
    assert outcome.exit_code == 0
    assert {"agt_1", "batch", "7", "2"} <= set(outcome.out.split())
    assert "org_1" in service.run("queue", "show", "--all").out
    assert service.requests[-2].url.params["all"] in ("true", "True")


@pytest.mark.requirement("K8")
def test_queued_runs_are_cancelled_by_agent_and_lane_and_never_all_by_mistake() -> None:
    service = FakeService().on("POST", "/v1/runs/cancel", {"cancelled": 3, "stopping": 0})
    assert service.run("queue", "cancel").exit_code == 2
    assert service.run("queue", "cancel", "--lane", "fast").exit_code == 2
    service.run("queue", "cancel", "--lane", "batch")
    service.run("queue", "cancel", "--agent", "guide")
    assert service.sent("POST", "/v1/runs/cancel") == [
        {"all": True, "queued": True, "lane": "batch"},
        {"agent_id": "guide", "queued": True},
    ]


@pytest.mark.requirement("K8")
def test_requeued_runs_are_named() -> None:
    service = FakeService().on("POST", "/v1/queue/requeue", {"run_ids": ["run_1"]})
    outcome = service.run("queue", "requeue", "--idle", "120", "--agent", "guide")
    assert (outcome.exit_code, service.sent("POST", "/v1/queue/requeue")) == (
        0,
        [{"idle_s": 120.0, "agent_id": "guide"}],
    )
    assert "run_1" in outcome.out + outcome.err
