"""`dragoman run list` and `export` with conditions and orders."""

from pathlib import Path

import httpx
import pytest

from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, run_document


@pytest.mark.requirement("U6")
def test_runs_are_listed_under_conditions_in_an_order() -> None:
    service = FakeService().on("GET", "/v1/runs", {"data": [], "next_cursor": None})
    service.on("GET", "/v1/agents/guide", agent_document(id="agt_1", name="guide"))
    conditions = ("--tool", "t", "--error", "model_auth", "--metadata", "a=b", "--search", "apples", "--model", "p:m")
    times = ("--since", "2026-01-01", "--until", "2026-01-02T03:04:05Z")
    told = service.run("run", "list", "--agent", "guide", "--order", "longest", *conditions, *times)
    assert told.exit_code == 0
    assert dict(service.requests[-1].url.params) == {
        "tool": "t",
        "error": "model_auth",
        "metadata": "a=b",
        "search": "apples",
        "model": "p:m",
        "since": "2026-01-01T00:00:00+00:00",
        "until": "2026-01-02T03:04:05+00:00",
        "agent_id": "agt_1",
        "order": "longest",
        "limit": "50",
    }
    assert "--order" in service.run("run", "list", "--order", "fastest").err


@pytest.mark.requirement("U6")
def test_runs_are_counted_under_the_same_conditions() -> None:
    service = FakeService().on("GET", "/v1/runs/count", {"count": 1_000, "has_more": True})
    told = service.run("run", "list", "--count", "--status", "failed", "--order", "oldest")
    assert (told.out, told.err) == ("1000\n", "There are more.\n")
    assert dict(service.requests[-1].url.params) == {"status": "failed"}
    assert service.run("run", "list", "--count", "--json").json == {"count": 1_000, "has_more": True}


@pytest.mark.requirement("U6")
def test_a_page_without_runs_is_no_end() -> None:
    """Runs that no index has are searched for page by page."""
    found = run_document()
    service = FakeService().on(
        "GET", "/v1/runs", {"data": [], "next_cursor": "on"}, {"data": [found], "next_cursor": None}
    )
    assert service.run("run", "list", "--model", "rare:one", "--json").json["data"] == [found]


@pytest.mark.requirement("U6")
def test_runs_are_exported_to_the_terminal_or_a_file(tmp_path: Path) -> None:
    service = FakeService().on("GET", "/v1/runs/export", httpx.Response(200, text="id,status\nrun_1,failed\n"))
    assert service.run("run", "export", "--format", "csv").out == "id,status\nrun_1,failed\n"
    file = tmp_path / "runs.csv"
    told = service.run("run", "export", "--format", "csv", "--status", "failed", "-o", str(file))
    assert file.read_text(encoding="utf-8") == "id,status\nrun_1,failed\n"
    assert f"Wrote 1 runs to {file}." in told.err
    assert dict(service.requests[-1].url.params) == {"status": "failed", "format": "csv"}
