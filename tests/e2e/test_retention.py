"""A service whose organization keeps things for thirty days, over a data directory in which some are older."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Dragoman
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving

pytestmark = pytest.mark.timeout(300)

FORTY_DAYS = 40 * 24 * 3_600 * 1_000_000
"""In microseconds, as times are stored."""
EMAIL = {"to": "ada@example.org", "subject": "Hi", "body": "Hello."}


def make_old(home: Path, *threads: str, sources: bool = True) -> None:
    """As if all of these threads, and all that the audit trail says, had happened forty days ago. The trail is sealed anew
    by the next start, as after a start that never sealed any of it."""
    names = ", ".join(f"'{thread}'" for thread in threads)
    of_threads = {
        "thread": (["created_at"], f"id IN ({names})"),
        "message": (["created_at"], f"thread_id IN ({names})"),
        "source": (["created_at"], f"thread_id IN ({names})"),
        "run": (["created_at", "started_at", "finished_at"], f"thread_id IN ({names})"),
        "audit_event": (["at"], "true"),
    }
    with closing(sqlite3.connect(home / "dragoman.db")) as connection, connection:
        for table, (columns, which) in of_threads.items():
            if table == "source" and not sources:
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


@pytest.mark.requirement("K5", "C5")
def test_audit_entries_and_runs_are_in_files_before_they_are_removed(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "archive"
    here = DragomanHere(home)
    with serving(home) as service:
        service.call("PATCH", "/organization", {"retention_days": 30})
        service.agent("clerk", service.script("clerk", a_turn("Done.")))
        run = service.run("clerk")["run"]
    make_old(home, run["thread_id"], sources=False)
    trail = stored(home, "audit_event")

    with serving(home, DRAGOMAN_ARCHIVE_DIR=str(archive)) as service:
        until(lambda: "Audit entries cannot be written" in service.log.read_text(), patience_s=60, what="the sweep")
        assert service.call("GET", "/audit-events/verify")["pruned_through"] == 0, "what cannot be archived stays"
        assert status(service, f"/runs/{run['id']}") == httpx.codes.OK
        events = [event["type"] for event in service.events(run["id"])]
    assert not archive.exists(), "a directory that is not mounted is not made"
    archive.mkdir()
    with serving(home, DRAGOMAN_ARCHIVE_DIR=str(archive)) as service:
        until(lambda: service.call("GET", "/audit-events/verify")["pruned_through"], patience_s=60, what="pruning")
        report = service.call("GET", "/audit-events/verify")
        assert (report["ok"], report["pruned_through"]) == (True, trail)
        assert status(service, f"/runs/{run['id']}") == httpx.codes.NOT_FOUND
    [lines] = archive.glob(f"runs/*/*/{run['thread_id']}-*.ndjson.gz")
    kinds = [json.loads(line) for line in gzip.decompress(lines.read_bytes()).splitlines()]
    assert kinds[0]["run"]["id"] == run["id"]
    assert [kind["event"]["type"] for kind in kinds[1:]] == events

    told = here.run("audit", "verify", "--archive", str(archive), "--json").json
    assert (told["ok"], told["checked"]) == (True, trail)
    said = here.run("audit", "verify", "--archive", str(archive)).out
    assert "OK" in said
    assert f"numbers 1 to {trail}" in said
    [lines] = archive.glob("audit/*/*.ndjson.gz")
    lines.write_bytes(lines.read_bytes()[:-8])
    assert "not as it was written" in here.run("audit", "verify", "--archive", str(archive), exit_code=1).out
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

    make_old(home, old["thread_id"], waiting["thread_id"])
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
