"""Runs that earlier versions have stored. A database of each kind begins with the saved schema of
the first revision, is upgraded one revision at a time, gets the rows that a service of each saved
revision has stored, and is then used by this version."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from infrastructure.persistence.schema.revision import HEAD, plain_engine
from infrastructure.persistence.schema.upgrade import configuration, upgrade
from tests.databases import PostgresDatabases, sqlite_url
from tests.e2e.saved_rows import SAME_AS, SavedRuns
from tests.e2e.saved_runs import CANARY, LOOK, NOTE, SECRET_KEY, audit_entries, places, token_of, write_scripts
from tests.e2e.service import TERMINAL, Json, Service, assert_consistent, results_by_tool, serving
from tests.e2e.streams import stream
from tests.saved_schema import FOLDER, create_saved_schema

pytestmark = pytest.mark.timeout(600)

SAVED = sorted(path.stem for path in FOLDER.glob("*.json"))
MOVED = {"last_used_at"}
"""A key is used to read this."""
AN_HOUR = timedelta(hours=1)
"""How long ago the services that made the files stopped: their leases have expired, approvals and
idempotency keys are valid."""


def revisions() -> list[str]:
    """All of the chain, oldest first."""
    engine = plain_engine("sqlite://")
    with engine.connect() as connection:
        chain = list(ScriptDirectory.from_config(configuration(connection)).walk_revisions())
    engine.dispose()
    return [script.revision for script in reversed(chain)]


def walked(url: str, home: Path) -> dict[str, SavedRuns]:
    """Build the database revision by revision, each with its rows; what was put in, by revision."""
    saved = {}
    stopped_at = datetime.now(UTC) - AN_HOUR
    create_saved_schema(url)
    engine = plain_engine(url)
    for revision in revisions():
        with engine.begin() as connection:
            command.upgrade(configuration(connection), revision)
            if revision in SAVED:
                saved[revision] = SavedRuns.load(revision, places(home / revision), stopped_at=stopped_at)
                saved[revision].insert(connection)
    engine.dispose()
    upgrade(url)
    return saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """This version at work on what each earlier one has left, by its revision."""

    stored: dict[str, "Stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What one earlier version has left. `service` is used as who made the file: with their key,
    and a folder of their own for what servers write. `read` has what it answered first, by path."""

    service: Service
    saved: SavedRuns
    read: dict[str, Any]

    def run(self, story: str) -> str:
        return self.saved.runs[story]

    def answer(self, path: str) -> Any:
        return self.saved.answers[path]

    def calls(self) -> list[str]:
        log = self.service.home / "watched.log"
        return [line for line in log.read_text().splitlines() if line.startswith("called")]

    def completed(self, story: str) -> Json:
        ended = self.service.wait(self.run(story))
        assert ended["run"]["status"] == "completed", ended["run"]
        assert_consistent(ended["messages"], self.service.events(self.run(story)))
        return ended


def as_its_maker(service: Service, saved: SavedRuns, running: ExitStack) -> Stored:
    """The service as the maker of a file uses it, and what it says before anything else happens."""
    headers = {"Authorization": f"Bearer {saved.token}"}
    client = httpx.Client(base_url=f"{service.url}/v1", headers=headers, timeout=120.0, trust_env=False)
    home = service.home / saved.revision
    theirs = replace(service, home=home, key=saved.token, client=running.enter_context(client))
    paths = [path for path in saved.answers if path != "/audit-events"]
    read: dict[str, Any] = {path: theirs.call("GET", path) for path in paths}
    read["/audit-events"] = audit_entries(theirs)
    return Stored(service=theirs, saved=saved, read=read)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def estate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    home = tmp_path_factory.mktemp(f"saved-{request.param}") / "home"
    home.mkdir(mode=0o700)
    with ExitStack() as stack:
        settings = {"DRAGOMAN_SECRET_KEY": SECRET_KEY}
        if request.param == "sqlite":
            url = sqlite_url(home / "dragoman.db")
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            url = settings["DRAGOMAN_DATABASE_URL"] = stack.enter_context(databases.empty())
        for revision in SAVED:
            (home / revision).mkdir()
            (home / revision / "gate").touch()
        (home / "admin.key").write_text(f"{token_of(SAVED[-1])}\n")
        (home / "admin.key").chmod(0o600)
        write_scripts(home)
        saved = walked(url, home)
        service = stack.enter_context(serving(home, **settings))
        yield Estate(stored={revision: as_its_maker(service, runs, stack) for revision, runs in saved.items()})


@pytest.fixture(params=SAVED)
def stored(request: pytest.FixtureRequest, estate: Estate) -> Stored:
    return estate.stored[cast(str, request.param)]


def changed(before: Any, now: Any, at: str = "") -> list[str]:
    """Where `now` does not say what `before` said; it may say more."""
    if isinstance(before, dict) and isinstance(now, dict):
        lasting = [(key, value) for key, value in before.items() if key not in MOVED]
        return [place for key, value in lasting for place in changed(value, now.get(key), f"{at}/{key}")]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = zip(before, now, strict=True)
        return [place for number, (old, new) in enumerate(pairs) for place in changed(old, new, f"{at}/{number}")]
    return [] if before == now else [f"{at}: {before!r} was, {now!r} is"]


@pytest.mark.requirement("E2", "E6", "E7")
def test_every_revision_has_its_saved_runs_or_says_whose_are_the_same() -> None:
    chain = revisions()
    assert chain[-1] == HEAD
    missing = [revision for revision in chain if revision not in SAVED and revision not in SAME_AS]
    assert not missing, f"`python -m tests.e2e.saved_runs --write`, or a line in SAME_AS: {missing}"
    assert set(SAVED) <= set(chain)
    for revision, (other, reason) in SAME_AS.items():
        assert revision not in SAVED
        assert other in SAVED
        assert reason


@pytest.mark.requirement("E2", "E6", "E7")
def test_what_was_stored_is_read_as_it_was(stored: Stored) -> None:
    for path, before in stored.saved.answers.items():
        if path == "/audit-events":
            known = {entry["id"]: entry for entry in stored.read[path]}
            assert changed(before, [known.get(entry["id"]) for entry in before]) == []
        elif before.get("status") not in {"in_progress", "queued"}:
            assert changed(before, stored.read[path]) == [], path


@pytest.mark.requirement("E2")
def test_streams_of_runs_that_ended_replay_what_they_showed(stored: Stored) -> None:
    for run_id in stored.saved.runs.values():
        run = stored.answer(f"/runs/{run_id}")
        if run["status"] not in TERMINAL:
            continue
        before = stored.answer(f"/runs/{run_id}/events?limit=100")["data"]
        with stream(stored.service, "GET", f"/runs/{run_id}/stream", after=2) as events:
            *shown, end = [event["data"] for event in events]
        assert changed(before[2:], shown) == []
        assert end["status"] == run["status"]


@pytest.mark.requirement("C5")
def test_the_audit_trail_is_whole(stored: Stored) -> None:
    verdict = stored.service.call("GET", "/audit-events/verify")
    assert verdict["ok"], verdict


@pytest.mark.requirement("E3", "E4", "E7")
def test_a_run_that_was_under_way_goes_on_and_the_one_behind_it_follows(stored: Stored) -> None:
    ended = stored.completed("holder")
    results = results_by_tool(ended["messages"])
    assert results["mcp__watched__held_look"]["result"] == "held_look says held"
    assert results["mcp__watched__held_note"]["is_error"]
    assert [call for call in stored.calls() if "held_" in call] == ["called held_look held"]
    assert stored.completed("queued")["run"]["output"] == "Hello."


@pytest.mark.requirement("A1", "E3")
def test_a_run_that_waits_for_its_client_is_resumed(stored: Stored) -> None:
    run = stored.read[f"/runs/{stored.run('mailer')}"]
    results = [{"tool_call_id": call["id"], "result": "Sent."} for call in run["pending"]]
    stored.service.call("POST", f"/runs/{run['id']}/resume", {"tool_results": results})
    ended = stored.completed("mailer")
    assert ended["run"]["output"] == "It was shown."
    found = results_by_tool(ended["messages"])
    assert (found["send_email"]["result"], found[LOOK]["result"]) == ("Sent.", "look says first")


@pytest.mark.requirement("C3", "E3")
def test_a_call_that_waits_for_an_approval_is_approved_and_made_once(stored: Stored) -> None:
    run_id = stored.run("careful")
    [approval] = [entry for entry in stored.read["/approvals?limit=100"]["data"] if entry["run_id"] == run_id]
    stored.service.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
    ended = stored.completed("careful")
    assert results_by_tool(ended["messages"])[NOTE]["result"] == "note says allowed"
    assert stored.calls().count("called note allowed") == 1


@pytest.mark.requirement("B4", "E3")
def test_a_call_whose_server_has_asked_is_answered(stored: Stored) -> None:
    run = stored.read[f"/runs/{stored.run('painter')}"]
    answer = {"action": "accept", "content": {"colour": "red"}}
    results = [{"tool_call_id": call["id"], "result": answer} for call in run["pending"]]
    stored.service.call("POST", f"/runs/{run['id']}/resume", {"tool_results": results})
    ended = stored.completed("painter")
    assert results_by_tool(ended["messages"])["mcp__painter__paint"]["result"] == "door: red"


@pytest.mark.requirement("E7")
def test_threads_are_continued(stored: Stored) -> None:
    thread = stored.answer(f"/runs/{stored.run('looker')}")["thread_id"]
    before = stored.read[f"/threads/{thread}/messages?limit=100"]["data"]
    continued = stored.service.call("POST", f"/threads/{thread}/runs/wait", {"agent": "looker", "input": "Again."})
    assert continued["run"]["status"] == "completed"
    assert results_by_tool(continued["messages"])[LOOK]["result"] == "look says around"
    after = stored.service.call("GET", f"/threads/{thread}/messages?limit=100")["data"]
    assert changed(before, after[: len(before)]) == []
    assert len(after) == len(before) + 4


@pytest.mark.requirement("D4", "E7")
def test_sources_are_found_by_their_words(stored: Stored) -> None:
    thread = stored.answer(f"/runs/{stored.run('reader')}")["thread_id"]
    again = stored.service.call("POST", f"/threads/{thread}/runs/wait", {"agent": "reader", "input": "Again."})
    assert "within thirty days" in results_by_tool(again["messages"])["source_query"]["result"]


@pytest.mark.requirement("C4", "E7")
def test_canary_tokens_are_watched_for_and_a_closed_thread_stays_closed(stored: Stored) -> None:
    thread = stored.answer(f"/runs/{stored.run('guarded')}")["thread_id"]
    body = {"agent": "talker", "input": "And now?"}
    stored.service.call("POST", f"/threads/{thread}/runs", body, expect=409)
    halted = stored.service.run("guarded")
    assert halted["run"]["status"] == "halted"
    assert CANARY not in str(halted)
    stored.service.call("POST", f"/threads/{thread}/release")
    assert stored.service.call("POST", f"/threads/{thread}/runs/wait", body)["run"]["status"] == "completed"


@pytest.mark.requirement("E5")
def test_a_key_that_made_a_run_once_makes_no_second_one(stored: Stored) -> None:
    headers = {"Idempotency-Key": "only-once"}
    answer = stored.service.client.post("/runs/wait", json={"agent": "talker", "input": "Once."}, headers=headers)
    assert [answer.json()["run"]["id"]] == stored.saved.column("idempotency_key", "run_id")


@pytest.mark.parametrize("day", ["2026-11-22", "2028-02-29", "2036-12-31"])
def test_saved_runs_are_as_old_as_the_test_wants_them_on_any_day(day: str) -> None:
    stopped_at = datetime.fromisoformat(f"{day}T12:00:00Z")
    saved = SavedRuns.load(SAVED[-1], {}, stopped_at=stopped_at)
    a_day_later = (stopped_at + timedelta(days=1)).timestamp()
    expiries = [microseconds / 1_000_000 for microseconds in saved.column("approval", "expires_at")]
    assert expiries == pytest.approx([a_day_later, a_day_later], abs=60)
    [asked] = [
        call for pending in saved.column("run", "pending") if "approval_id" in pending for call in json.loads(pending)
    ]
    assert datetime.fromisoformat(asked["expires_at"]).timestamp() in expiries
    assert set(saved.column("usage", "day")) == {stopped_at.toordinal()}
    later = SavedRuns.load(SAVED[-1], {}, stopped_at=stopped_at + timedelta(days=1))
    assert saved.column("audit_event", "at") == later.column("audit_event", "at")
