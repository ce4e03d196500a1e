"""Runs that begin by the clock: in a service over its own file, and with several workers on one
database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tests.databases import PostgresDatabases
from tests.e2e.dragoman_process import Dragoman
from tests.e2e.postgres import Cluster, cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving

pytestmark = pytest.mark.timeout(300)

TWO_HOURS = 2 * 3_600 * 1_000_000
"""In microseconds, as times are stored."""
MISS_TWO_HOURS = f"UPDATE schedule SET next_fire_at = next_fire_at - {TWO_HOURS}"
EVERY_MINUTE = {"name": "minutely", "cron": "* * * * *", "agent": "clerk", "input": "Go."}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def runs(service: Service) -> list[Json]:
    """The oldest first."""
    return list(reversed(service.call("GET", "/runs")["data"]))


def stored(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000)


def due_at(run: Json) -> datetime:
    return moment(run["metadata"]["schedule"]["due_at"])


@pytest.mark.requirement("E7")
def test_a_schedule_makes_up_once_for_what_was_missed_and_then_fires_when_it_is_due(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        service.agent("clerk", service.script("clerk", a_turn("Done."), a_turn("Done."), a_turn("Done.")))
        # With its address, the command line need not ask whether the service answers.
        cli = Dragoman(home)
        cli.environment |= {"DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": service.key}
        given = ("--cron", "* * * * *", "--agent", "clerk", "--input", "Go.")
        made = cli.run("schedule", "add", "minutely", *given, "--json").json
        first = moment(str(made["next_fire_at"])) - moment(str(made["created_at"]))
        assert timedelta() < first <= timedelta(minutes=1)
    # As if the service had been away for two hours. The minute may have been full while it stopped.
    before = len(all_runs(home))
    with closing(sqlite3.connect(home / "dragoman.db")) as connection, connection:
        assert connection.execute(MISS_TWO_HOURS).rowcount == 1

    with serving(home) as service:
        until(lambda: len(runs(service)) > before, what="the run that was missed")
        missed = service.wait(runs(service)[before]["id"])["run"]
        assert missed["status"] == "completed"
        assert moment(missed["created_at"]) - due_at(missed) > timedelta(hours=1)

        # What the clock does once a minute, sooner. A change rings for whoever waits for the next
        # time.
        soon = datetime.now(UTC) + timedelta(seconds=2)
        with closing(sqlite3.connect(home / "dragoman.db", timeout=60)) as connection, connection:
            moved = connection.execute("UPDATE schedule SET next_fire_at = ?", (stored(soon),))
            assert moved.rowcount == 1
        service.call("PATCH", "/schedules/minutely", {"input": "Go again."})
        # The minute may end at any place here, and begin another run.
        until(lambda: soon in map(due_at, runs(service)), what="the run that is due")
        [due] = [run for run in runs(service) if due_at(run) == soon]
        punctual = service.wait(due["id"])["run"]
        assert punctual["status"] == "completed"
        assert timedelta() <= moment(punctual["created_at"]) - soon < timedelta(seconds=20)
        following = service.call("GET", "/schedules/minutely")
        last = service.call("GET", f"/runs/{following['last_run_id']}")
        assert due_at(last) >= soon
        assert due_at(last) < moment(following["next_fire_at"]) <= moment(last["created_at"]) + timedelta(minutes=1)
        assert service.client.delete("/schedules/minutely").status_code == 204
        fired = service.call("GET", "/audit-events?action=schedule.fired")["data"]
        assert {punctual["id"], missed["id"]} <= {entry["run_id"] for entry in fired}
        assert {entry["actor"] for entry in fired} == {f"schedule:{made['id']}"}
        started = service.call("GET", f"/audit-events?action=run.started&run_id={missed['id']}")["data"]
        assert [entry["actor"] for entry in started] == [f"schedule:{made['id']}"]


def all_runs(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "dragoman.db")) as connection:
        return [str(row[0]) for row in connection.execute("SELECT id FROM run")]


@pytest.fixture
def processes(postgres_databases: PostgresDatabases, tmp_path: Path) -> Iterator[Cluster]:
    """A database, and no process yet."""
    with postgres_databases.fresh() as url, cluster(url, tmp_path) as prepared:
        yield prepared


@pytest.mark.requirement("E6", "E7")
def test_of_several_workers_one_begins_the_run_that_was_missed_while_none_ran(processes: Cluster) -> None:
    api = processes.serve("api", "--no-worker")
    api.agent("clerk", api.script("clerk", a_turn("Done.")))
    daily = {**EVERY_MINUTE, "cron": (datetime.now(UTC) - timedelta(hours=1)).strftime("%M %H * * *")}
    for number in range(5):
        api.call("POST", "/schedules", {**daily, "name": f"daily-{number}"}, expect=201)
    with psycopg.connect(processes.url) as connection:
        connection.execute("SET ROLE dragoman_system")
        connection.execute(f"UPDATE schedule SET next_fire_at = next_fire_at - 12 * {TWO_HOURS}")
    for number in range(3):
        processes.work(f"worker-{number}")
    until(lambda: len(runs(api)) == 5, what="five runs")
    assert {api.wait(run["id"])["run"]["status"] for run in runs(api)} == {"completed"}
    schedules = api.call("GET", "/schedules")["data"]
    assert {schedule["last_run_id"] for schedule in schedules} == {run["id"] for run in runs(api)}
    assert [schedule["last_error"] for schedule in schedules] == [None] * 5
    assert len(api.call("GET", "/audit-events?action=schedule.*")["data"]) == 10
