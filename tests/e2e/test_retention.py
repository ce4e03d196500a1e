"""A service whose organization keeps things for thirty days, over a data directory in which some
are older."""

import asyncio
import gzip
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Dragoman
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving

pytestmark = pytest.mark.timeout(300)

FORTY_DAYS = 40 * 24 * 3_600 * 1_000_000
"""In microseconds, as times are stored."""
EMAIL = {"to": "ada@example.org", "subject": "Hi", "body": "Hello."}


def make_old(home: Path, *threads: str, without: Sequence[str] = ()) -> None:
    """As if all of these threads, and all that the audit trail says, had happened forty days ago.
    The trail is sealed anew by the next start, as after a start that never sealed any of it. The
    tables `without` rows of them are named."""
    names = ", ".join(f"'{thread}'" for thread in threads)
    of_threads = {
        "thread": (["created_at"], f"id IN ({names})"),
        "message": (["created_at"], f"thread_id IN ({names})"),
        "source": (["created_at"], f"thread_id IN ({names})"),
        "run": (["created_at", "started_at", "finished_at"], f"thread_id IN ({names})"),
        "gateway_session": (["created_at", "expires_at", "revoked_at"], f"thread_id IN ({names})"),
        "audit_event": (["at"], "true"),
    }
    with closing(sqlite3.connect(home / "dragoman.db")) as connection, connection:
        for table, (columns, which) in of_threads.items():
            if table in without:
                continue
            earlier = ", ".join(f"{column} = {column} - {FORTY_DAYS}" for column in columns)
            assert connection.execute(f"UPDATE {table} SET {earlier} WHERE {which}").rowcount > 0, table
        for table in ("audit_seal", "audit_head"):
            assert connection.execute(f"DELETE FROM {table}").rowcount > 0, table


def stored(home: Path, table: str) -> int:
    with closing(sqlite3.connect(home / "dragoman.db")) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def status(service: Service, path: str) -> int:
    return service.client.get(path).status_code


def applied(service: Service) -> list[Json]:
    return list(service.call("GET", "/audit-events?action=retention.applied")["data"])


async def look(session: Json) -> None:
    """One call by an official client."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {session['token']}"}, timeout=60) as http,
        Client(streamable_http_client(session["url"], http_client=http)) as client,
    ):
        assert not (await client.call_tool("mcp__watched__look", {"text": "a"})).is_error


@pytest.mark.requirement("K5", "C5")
def test_audit_entries_runs_and_gateway_calls_are_in_files_before_they_are_removed(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "archive"
    here = DragomanHere(home)
    with serving(home) as service:
        service.call("PATCH", "/organization", {"retention_days": 30})
        service.agent("clerk", service.script("clerk", a_turn("Done.")))
        run = service.run("clerk")["run"]
        service.watched_server("watched", trusted=True)
        service.agent("helper", service.script("helper", a_turn("Hello.")), mcp_servers=["watched"])
        session = service.call("POST", "/gateway-sessions", {"agent_id": "helper"})
        asyncio.run(look(session))
        service.client.delete(f"/gateway-sessions/{session['id']}").raise_for_status()
    make_old(home, run["thread_id"], session["thread_id"], without=["source"])
    trail = stored(home, "audit_event")

    with serving(home, DRAGOMAN_ARCHIVE_DIR=str(archive)) as service:
        until(lambda: "Audit entries cannot be written" in service.log.read_text(), patience_s=60, what="the sweep")
        assert f"DRAGOMAN_ARCHIVE_DIR names {archive}, which is not a directory" in service.log.read_text()
        assert service.call("GET", "/audit-events/verify")["pruned_through"] == 0, "what cannot be archived stays"
        assert status(service, f"/runs/{run['id']}") == httpx.codes.OK
        events = [event["type"] for event in service.events(run["id"])]
    assert not archive.exists(), "a directory that is not mounted is not made"
    archive.mkdir()
    broken_off = archive / "drafts" / f"{'0a' * 12}.part"
    broken_off.parent.mkdir()
    broken_off.touch()
    os.utime(broken_off, (0, 0))
    with serving(home, DRAGOMAN_ARCHIVE_DIR=str(archive)) as service:
        until(lambda: service.call("GET", "/audit-events/verify")["pruned_through"], patience_s=60, what="pruning")
        report = service.call("GET", "/audit-events/verify")
        assert (report["ok"], report["pruned_through"]) == (True, trail)
        assert status(service, f"/runs/{run['id']}") == httpx.codes.NOT_FOUND
        assert status(service, f"/threads/{session['thread_id']}") == httpx.codes.NOT_FOUND
    assert not broken_off.exists(), "its writer was killed long ago"
    [calls] = archive.glob(f"runs/*/*/{session['thread_id']}-*.ndjson.gz")
    [line] = gzip.decompress(calls.read_bytes()).splitlines()
    call = json.loads(line)["gateway_call"]
    assert (call["name"], call["params"], call["result"]["outcome"]) == (
        "mcp__watched__look",
        {"text": "a"},
        "succeeded",
    )
    [lines] = archive.glob(f"runs/*/*/{run['thread_id']}-*.ndjson.gz")
    kinds = [json.loads(line) for line in gzip.decompress(lines.read_bytes()).splitlines()]
    assert kinds[0]["run"]["id"] == run["id"]
    assert [kind["event"]["type"] for kind in kinds[1:]] == events

    told = here.run("audit", "verify", "--archive", str(archive), "--json").json
    assert (told["ok"], told["checked"]) == (True, trail)
    said = here.run("audit", "verify", "--archive", str(archive)).out
    assert "OK" in said
    assert f"numbers 1 to {trail}" in said
    checked = here.run("archive", "verify", str(archive), "--json").json
    assert (checked["ok"], checked["audit"]) == (True, told)
    in_files = {"runs": 1, "events": len(events), "tool_calls": 0, "gateway_calls": 1}
    assert checked["runs"] == {"ok": True, "files": 2, **in_files, "damaged": [], "without_manifest": []}
    assert "They hold audit entries and runs or gateway calls." in here.run("archive", "verify", str(archive)).out
    calls.with_name(calls.name.replace(".ndjson.gz", ".json")).unlink()
    said = here.run("archive", "verify", str(archive), exit_code=1).out
    assert f"{session['thread_id']}" in said
    assert "has no manifest" in said
    [lines] = archive.glob("audit/*/*.ndjson.gz")
    lines.write_bytes(lines.read_bytes()[:-8])
    assert "not as it was written" in here.run("audit", "verify", "--archive", str(archive), exit_code=1).out
    assert "not as it was written" in here.run("archive", "verify", str(archive), exit_code=1).out
    assert "not a directory" in here.run("audit", "verify", "--archive", str(lines), exit_code=2).err


@pytest.mark.requirement("C5", "E7")
def test_what_has_outlived_its_time_vanishes_and_the_audit_trail_still_verifies(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        service.call("PATCH", "/organization", {"retention_days": 30})
        service.agent("clerk", service.script("clerk", a_turn("Done.")))
        mail = service.script("mail", a_turn("Shown.", ("send_email", EMAIL)))
        service.agent("writer", mail, tools=["send_email"])
        old, young = (service.run("clerk")["run"] for _ in range(2))
        waiting = service.run("writer")["run"]
        assert waiting["status"] == "requires_action"
        upload = service.client.post(f"/threads/{old['thread_id']}/sources", files={"file": ("a.txt", b"walrus")})
        assert upload.status_code == 201
        spent = service.call("GET", "/usage")["data"]

    make_old(home, old["thread_id"], waiting["thread_id"], without=["gateway_session"])
    trail = stored(home, "audit_event")

    with serving(home) as service:
        until(lambda: applied(service), patience_s=60, what="retention.applied")
        for path in (
            f"/threads/{old['thread_id']}",
            f"/runs/{old['id']}",
            f"/runs/{old['id']}/events",
            f"/sources/{upload.json()['id']}",
        ):
            assert status(service, path) == httpx.codes.NOT_FOUND, path
        for run in (young, waiting):
            assert service.call("GET", f"/runs/{run['id']}")["status"] == run["status"]
            assert service.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
        (entry,) = applied(service)
        assert (entry["actor"], entry["details"]["retention_days"]) == ("system", 30)
        counted = {name: entry["details"][name] for name in ("threads", "runs", "messages", "sources", "audit_events")}
        assert counted == {"threads": 1, "runs": 1, "messages": 2, "sources": 1, "audit_events": trail}
        assert service.call("GET", "/usage")["data"] == spent
        report = service.call("GET", "/audit-events/verify")
        assert (report["ok"], report["pruned_through"], report["first_broken"]) == (True, trail, None)

    Dragoman(home).run("audit", "verify")
