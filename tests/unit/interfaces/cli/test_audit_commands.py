"""`dragoman audit export` and `verify`."""

import json
from pathlib import Path

import httpx
import pytest

from domain.json_value import JsonObject
from interfaces.http.audit.views import ChainReportView
from interfaces.http.mcp_servers.views import McpServerView
from tests.unit.interfaces.cli.fake_service import FakeService, problem, whole

EXPORT, VERIFY = "/v1/audit-events/export", "/v1/audit-events/verify"
LINES: tuple[JsonObject, ...] = (
    {"number": 1, "id": "aud_1", "details": {"a": "\u2028ü"}},
    {"number": 2, "id": "aud_2"},
)
WHOLE = whole(
    ChainReportView,
    {
        "ok": True,
        "checked": 7,
        "sealed_through": 7,
        "pruned_through": 0,
        "unsealed": 0,
        "sealed_late": 0,
        "first_broken": None,
        "unknown_keys": [],
    },
)


def exporting() -> FakeService:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in LINES)
    return FakeService().on("GET", EXPORT, httpx.Response(200, text=text))


@pytest.mark.requirement("C5")
def test_an_export_goes_to_stdout_a_line_for_each_event() -> None:
    outcome = exporting().run("audit", "export")
    assert [json.loads(line) for line in outcome.out.removesuffix("\n").split("\n")] == list(LINES)


@pytest.mark.requirement("C5")
def test_an_export_goes_into_a_file_under_conditions(tmp_path: Path) -> None:
    service = exporting().on("GET", "/v1/mcp-servers/files", whole(McpServerView, {"id": "mcp_1", "slug": "files"}))
    file = tmp_path / "audit.ndjson"
    outcome = service.run(
        "audit", "export", "--action", "tool.*", "--server", "files", "--actor", "key_1", "--output", str(file)
    )
    assert (outcome.exit_code, outcome.out) == (0, "")
    assert [json.loads(line) for line in file.read_text("utf-8").removesuffix("\n").split("\n")] == list(LINES)
    assert dict(service.requests[-1].url.params) == {"action": "tool.*", "server_id": "mcp_1", "actor": "key_1"}
    assert [path.name for path in tmp_path.iterdir()] == ["audit.ndjson"]


def test_an_export_that_is_refused_leaves_no_file(tmp_path: Path) -> None:
    service = FakeService().on("GET", EXPORT, problem(403, "role_insufficient", "No."))
    outcome = service.run("audit", "export", "-o", str(tmp_path / "audit.ndjson"))
    assert outcome.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_breaks_off_within_a_line_fails(tmp_path: Path) -> None:
    service = FakeService().on("GET", EXPORT, httpx.Response(200, text='{"number": 1}\n{"num'))
    outcome = service.run("audit", "export", "-o", str(tmp_path / "audit.ndjson"))
    assert (outcome.exit_code, list(tmp_path.iterdir())) == (1, [])


def test_an_export_into_a_place_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    outcome = exporting().run("audit", "export", "-o", str(tmp_path / "missing" / "audit.ndjson"))
    assert outcome.exit_code == 2
    assert len(outcome.err.splitlines()) == 1


@pytest.mark.requirement("C5")
def test_a_whole_trail_is_said_to_be_whole() -> None:
    outcome = FakeService().on("GET", VERIFY, WHOLE).run("audit", "verify")
    assert outcome.exit_code == 0
    assert "7 events, through number 7" in outcome.out
    assert FakeService().on("GET", VERIFY, WHOLE).run("audit", "verify", "--json").json == WHOLE


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"number": 3, "event_id": "aud_3", "problem": "edited"}, "number 3 (aud_3) was edited"),
        ({"number": 8, "event_id": None, "problem": "deleted"}, "number 8 was deleted"),
        ({"number": None, "event_id": None, "problem": "head_deleted"}, "its signed head was deleted"),
        ({"number": None, "event_id": "aud_9", "problem": "unsealed"}, "aud_9 was not sealed within ten seconds"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_broken_trail_exits_1_and_says_where(broken: JsonObject, said: str, options: tuple[str, ...]) -> None:
    document: JsonObject = {**WHOLE, "ok": False, "first_broken": broken}
    outcome = FakeService().on("GET", VERIFY, document).run("audit", "verify", *options)
    assert outcome.exit_code == 1
    if options:
        assert outcome.json == document
    else:
        assert said in outcome.out


@pytest.mark.requirement("C5")
def test_seals_of_a_lost_key_exit_1_and_name_the_key_without_speaking_of_tampering() -> None:
    document: JsonObject = {**WHOLE, "ok": False, "unknown_keys": [{"key_id": "ab12", "links": 4}]}
    outcome = FakeService().on("GET", VERIFY, document).run("audit", "verify")
    assert outcome.exit_code == 1
    assert "4 events were sealed with the key ab12" in outcome.out
    assert "broken" not in outcome.out
