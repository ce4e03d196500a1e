"""Backing up a service that is in use, and restoring it elsewhere, as docs/guides/backup.md
describes it."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.postgres import cluster
from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Service, a_turn, serving
from tests.stoppable_postgres import stoppable_postgres

pytestmark = pytest.mark.timeout(300)

LOOK = "mcp__watched__look"
VALUE = "the-value-that-is-encrypted"


def a_used_service(service: Service, folder: Path) -> str:
    """A secret, an agent whose server needs it, and a run of it; the run's id. The server keeps
    what it was given in `folder`."""
    service.call("POST", "/secrets", {"name": "token", "value": VALUE})
    server = " ".join((*ISOLATED_PYTHON, str(SERVERS / "watched_server.py"), str(folder / "log")))
    command = ("sh", "-c", f'printf %s "$TOKEN" >{folder}/token && exec {server}')
    service.server("watched", *command, env={"TOKEN": {"secret": "token"}}, trusted=True)
    model = service.script("looking", a_turn("I look.", (LOOK, {"text": "here"})), a_turn("Seen."))
    service.agent("looker", model, mcp_servers=["watched"])
    return str(service.run("looker")["run"]["id"])


def assert_all_is_there(restored: Service, run_id: str, folder: Path) -> None:
    """Runs, transcripts, secrets and a trail that verifies; and it goes on working."""
    found = restored.wait(run_id)
    assert found["run"]["status"] == "completed"
    assert "look says here" in json.dumps(found["messages"])
    assert restored.events(run_id)[-1]["type"] == "run.completed"
    assert [secret["name"] for secret in restored.call("GET", "/secrets")["data"]] == ["token"]
    verdict = restored.call("GET", "/audit-events/verify")
    assert verdict["ok"] is True, verdict
    (folder / "token").unlink()
    again = restored.run("looker")["run"]
    assert again["status"] == "completed"
    assert (folder / "token").read_text() == VALUE, "what was encrypted is read with the key that was kept"
    assert restored.call("GET", "/audit-events/verify")["ok"] is True


@pytest.mark.requirement("E6", "B12", "C5")
def test_a_copy_made_of_a_running_service_is_all_that_another_home_needs_with_the_keys(tmp_path: Path) -> None:
    home, other, copy = tmp_path / "home", tmp_path / "other", tmp_path / "copy.db"
    here = DragomanHere(home)
    with serving(home) as service:
        run_id = a_used_service(service, tmp_path)
        assert service.call("GET", "/audit-events/verify")
        told = here.run("db", "backup", str(copy), "--json").json
        later = str(service.run("looker")["run"]["id"])
    assert told == {"file": str(copy), "bytes": copy.stat().st_size}
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("copy.db?*")), "one file, and nothing beside it"

    other.mkdir(mode=0o700)
    shutil.copy2(copy, other / "dragoman.db")
    for name in ("secret.key", "admin.key"):
        shutil.copy2(home / name, other / name)
    shutil.copytree(home / "scripted", other / "scripted")
    with serving(other) as restored:
        assert_all_is_there(restored, run_id, tmp_path)
        restored.call("GET", f"/runs/{later}", expect=404)


@pytest.mark.requirement("E6")
def test_a_backup_takes_the_place_of_nothing_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    here, copy = DragomanHere(tmp_path / "home"), tmp_path / "copy.db"
    assert "There is no database" in here.run("db", "backup", str(copy), exit_code=1).err
    here.run("thread", "create")
    copy.write_text("something else", encoding="utf-8")
    assert "exists" in here.run("db", "backup", str(copy), exit_code=1).err
    assert copy.read_text(encoding="utf-8") == "something else"
    assert "cannot be written" in here.run("db", "backup", str(tmp_path / "none" / "copy.db"), exit_code=1).err
    database = here.home / "dragoman.db"
    database.write_bytes(b"no database at all " * 500)
    refused = here.run("db", "backup", str(tmp_path / "second.db"), exit_code=1)
    assert "dragoman doctor" in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "home"]


@pytest.mark.requirement("E6")
def test_a_backup_is_of_one_moment_though_somebody_writes(tmp_path: Path) -> None:
    here, copy = DragomanHere(tmp_path / "home"), tmp_path / "copy.db"
    here.run("thread", "create")
    with closing(sqlite3.connect(here.home / "dragoman.db")) as writing:
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("UPDATE organization SET name = 'not yet'")
        here.run("db", "backup", str(copy))
        writing.commit()
    with closing(sqlite3.connect(copy)) as copied:
        assert copied.execute("SELECT name FROM organization").fetchall() == [("default",)]
        assert copied.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.requirement("K5")
def test_an_older_database_is_vacuumed_once_while_no_service_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    here = DragomanHere(home)
    here.run("thread", "create")
    with closing(sqlite3.connect(home / "dragoman.db", isolation_level=None)) as older:
        older.execute("PRAGMA auto_vacuum = NONE")
        older.execute("VACUUM")
    with serving(home):
        assert here.run("db", "vacuum", exit_code=1).err
    told = here.run("db", "vacuum", "--json").json
    assert told["bytes"] == (home / "dragoman.db").stat().st_size
    with closing(sqlite3.connect(home / "dragoman.db")) as vacuumed:
        assert vacuumed.execute("PRAGMA auto_vacuum").fetchall() == [(2,)]
    assert f"{told['bytes']} bytes now" in here.run("db", "vacuum").out


@pytest.mark.requirement("E6")
def test_for_postgresql_its_own_tools_are_named(tmp_path: Path) -> None:
    settings = {"DRAGOMAN_DATABASE_URL": "postgresql://dragoman@127.0.0.1:9/dragoman", "DRAGOMAN_SECRET_KEY": "k" * 40}
    refused = DragomanHere(tmp_path / "home").run("db", "backup", str(tmp_path / "copy"), exit_code=2, **settings)
    assert "pg_dump" in refused.err
    refused = DragomanHere(tmp_path / "home").run("db", "vacuum", exit_code=2, **settings)
    assert "autovacuum" in refused.err


@pytest.mark.requirement("E6", "B12", "C5")
def test_a_dump_of_postgresql_restores_into_another_database(tmp_path: Path) -> None:
    dump = tmp_path / "dragoman.dump"
    with (
        stoppable_postgres() as server,
        PostgresDatabases(server.url).prepared() as databases,
        databases.fresh() as url,
        cluster(url, tmp_path) as processes,
    ):
        with processes.running:
            service = processes.serve("one")
            run_id = a_used_service(service, tmp_path)
            dumping = [server.tool("pg_dump"), "--format=custom", f"--file={dump}"]
            as_user = subprocess.run([*dumping, url], capture_output=True, check=False)
            assert as_user.returncode != 0, "who serves may not dump: it sees one organization at a time"
            subprocess.run([*dumping, databases.owner_url(url)], check=True)
        with databases.empty() as other_url:
            restoring = [server.tool("pg_restore"), "--exit-on-error", f"--dbname={other_url}", str(dump)]
            subprocess.run(restoring, check=True)
            home = tmp_path / "other"
            home.mkdir(mode=0o700)
            shutil.copy2(tmp_path / "one" / "admin.key", home / "admin.key")
            (home / "scripted").symlink_to(tmp_path / "scripted")
            settings = {**processes.settings, "DRAGOMAN_DATABASE_URL": databases.user_url(other_url)}
            with serving(home, **settings) as restored:
                assert_all_is_there(restored, run_id, tmp_path)
