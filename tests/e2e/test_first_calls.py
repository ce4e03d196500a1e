"""When a run's servers are started: at its first call of each, not at its start."""

import pytest

from tests.e2e.service import Service, a_turn


@pytest.mark.requirement("B15")
def test_a_run_starts_the_servers_that_it_calls_and_no_others(service: Service) -> None:
    logs = {slug: service.watched_server(slug) for slug in ("called", "idle")}
    for slug in logs:
        service.call("POST", f"/mcp-servers/{slug}/refresh")
    listed = {slug: log.read_text(encoding="utf-8").count("started") for slug, log in logs.items()}
    model = service.script(
        "one", a_turn("", ("mcp__called__look", {})), a_turn("", ("mcp__called__look", {})), a_turn(".")
    )
    service.agent("worker", model, mcp_servers=list(logs))

    assert service.run("worker")["run"]["status"] == "completed"

    started = {slug: log.read_text(encoding="utf-8").count("started") - listed[slug] for slug, log in logs.items()}
    assert started == {"called": 1, "idle": 0}
