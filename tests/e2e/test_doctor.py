"""`dragoman doctor` as it is started where something is wrong: it names what is, changes nothing,
and never crashes."""

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Done
from tests.e2e.service import SERVERS, serving
from tests.integration.mcp.parts import free_port

FAULTY = str(SERVERS / "faulty_server.py")


@pytest.fixture
def dragoman(tmp_path: Path) -> DragomanHere:
    """With a HOME that was used."""
    here = DragomanHere(tmp_path / "home")
    here.run("thread", "create")
    return here


def states(done: Done) -> dict[str, str]:
    findings = done.json["findings"]
    assert isinstance(findings, list)
    found = {str(finding["check"]): finding for finding in findings if isinstance(finding, dict)}
    assert all(finding["advice"] for finding in found.values() if finding["state"] != "ok")
    return {check: str(finding["state"]) for check, finding in found.items()}


def examined(dragoman: DragomanHere, *, exit_code: int, **environment: str) -> dict[str, str]:
    return states(dragoman.run("doctor", "--json", exit_code=exit_code, **environment))


@pytest.mark.requirement("G2")
def test_a_used_home_is_in_order_whether_or_not_a_service_runs_on_it(dragoman: DragomanHere) -> None:
    stopped = examined(dragoman, exit_code=0)
    assert {check for check, state in stopped.items() if state != "ok"} <= {"model provider", "node.js", "disk"}
    with serving(dragoman.home) as service:
        running = examined(dragoman, exit_code=0)
        told = dragoman.run("doctor").out
    assert f"running at {service.url}" in told
    assert running["readiness"] == running["database"] == running["schema"] == "ok"


@pytest.mark.requirement("G2")
def test_files_that_others_can_read_are_problems(dragoman: DragomanHere) -> None:
    (dragoman.home / "secret.key").chmod(0o644)
    (dragoman.home / "dragoman.db").chmod(0o660)
    found = examined(dragoman, exit_code=1)
    assert (found["secret.key"], found["dragoman.db"]) == ("problem", "problem")


@pytest.mark.requirement("G2")
def test_a_broken_database_is_named_and_left_as_it_is(dragoman: DragomanHere) -> None:
    database = dragoman.home / "dragoman.db"
    for beside in dragoman.home.glob("dragoman.db-*"):
        beside.unlink()
    database.write_bytes(b"no database at all " * 500)
    found = examined(dragoman, exit_code=1)
    assert (found["database"], found["service"]) == ("problem", "warning")
    assert "readiness" not in found
    assert database.read_bytes().startswith(b"no database at all")


@pytest.mark.requirement("G2", "E6")
def test_an_older_schema_is_not_upgraded_by_looking_at_it(dragoman: DragomanHere) -> None:
    with closing(sqlite3.connect(dragoman.home / "dragoman.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0031'")
        connection.commit()
    found = examined(dragoman, exit_code=0)
    assert (found["schema"], found["service"]) == ("warning", "warning")
    with closing(sqlite3.connect(dragoman.home / "dragoman.db")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0031",)]


@pytest.mark.requirement("G2", "B12")
def test_a_home_without_its_secret_key_is_a_problem_and_gets_no_new_one(dragoman: DragomanHere) -> None:
    (dragoman.home / "secret.key").unlink()
    assert examined(dragoman, exit_code=1)["secret key"] == "problem"
    assert not (dragoman.home / "secret.key").exists()


@pytest.mark.requirement("G2")
def test_a_home_that_is_gone_is_not_made(dragoman: DragomanHere) -> None:
    shutil.rmtree(dragoman.home)
    assert examined(dragoman, exit_code=0)["home"] == "warning"
    assert not dragoman.home.exists()


@pytest.mark.requirement("G2", "B3")
def test_each_server_is_really_tested(dragoman: DragomanHere) -> None:
    dragoman.run("mcp", "add", "broken", "--", sys.executable, FAULTY, "exits")
    dragoman.run("mcp", "add", "gone", "--kind", "http", "--url", f"http://127.0.0.1:{free_port()}/mcp")
    dragoman.run("mcp", "add", "new", "--kind", "python", "--package", "mcp-server-time")
    done = dragoman.run("doctor", "--json", exit_code=1)
    found = states(done)
    assert [found[f"mcp server {slug}"] for slug in ("broken", "gone", "new")] == ["problem"] * 3
    assert "mcp install new" in done.out


@pytest.mark.requirement("G2", "E6")
def test_a_postgresql_that_nobody_answers_at_is_a_problem_and_providers_are_too(dragoman: DragomanHere) -> None:
    found = examined(
        dragoman,
        exit_code=1,
        DRAGOMAN_DATABASE_URL=f"postgresql://dragoman@127.0.0.1:{free_port()}/dragoman",
        DRAGOMAN_SECRET_KEY="k" * 40,
        OPENAI_API_KEY="sk-any",
        OPENAI_BASE_URL=f"http://127.0.0.1:{free_port()}/v1",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port()}",
    )
    assert (found["database"], found["model provider openai"]) == ("problem", "problem")
    assert found["tracing (OpenTelemetry)"] == "warning"
    assert "readiness" not in found


@pytest.mark.requirement("G2", "E6")
def test_the_home_of_a_worker_lacks_nothing_and_a_key_checks_the_rest(
    postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    service, worker = DragomanHere(tmp_path / "service"), DragomanHere(tmp_path / "worker")
    worker.home.mkdir(mode=0o700)
    with postgres_databases.fresh() as url:
        shared = {"DRAGOMAN_DATABASE_URL": url, "DRAGOMAN_SECRET_KEY": "k" * 40}
        service.run("thread", "create", exit_code=0, **shared)
        done = worker.run("doctor", "--json", exit_code=0, **shared)
        key = (service.home / "admin.key").read_text().strip()
        checked = examined(worker, exit_code=0, DRAGOMAN_API_KEY=key, **shared)
    assert states(done)["service"] == "warning"
    assert "like that of a worker it has no admin key" in done.out
    assert checked["readiness"] == "ok"
