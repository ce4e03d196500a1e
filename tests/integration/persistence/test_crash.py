"""A process killed in the middle of writing leaves a database that is whole and holds all it was
told is stored."""

import subprocess
import sys
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from sqlalchemy import text

from domain.audit.event import AuditAction
from domain.ids import RunId, WorkerId
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import ORG, a_thread_id, after, an_agent, an_audit_event
from tests.contract.paging import pages_of
from tests.contract.run_steps import claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import SqliteFiles
from tests.integration.persistence import killed_writer
from tests.integration.persistence.conftest import add_first_organization

RUNS = 8


@pytest.mark.requirement("E3", "E4")
@pytest.mark.parametrize("lines", [3, 40, 120])
async def test_a_killed_process_leaves_a_whole_database(sqlite_files: SqliteFiles, lines: int) -> None:
    path = sqlite_files.fresh()
    await prepare(path)
    acknowledged = work_until_killed(path, lines)

    database = SqliteDatabase(path)
    await database.start()
    stores = sql_stores(database)
    assert await database.read(lambda c: c.execute(text("PRAGMA integrity_check")).scalar_one(), scope=SYSTEM) == "ok"
    assert await database.read(lambda c: c.execute(text("PRAGMA foreign_key_check")).all(), scope=SYSTEM) == []
    for run_id, last_seq in acknowledged.items():
        await check_run(stores, run_id, at_least=last_seq)
    lapsed = await stores.leases.recoverable(at=after(3600), limit=100)
    assert set(acknowledged) <= set(lapsed)
    for run_id in acknowledged:
        again = await claim(stores, run_id, worker_id=WorkerId("the-next"), at=after(3601))
        assert again.run.attempt == 2
    await database.stop()


async def prepare(path: Path) -> None:
    database = SqliteDatabase(path)
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    await sql_stores(database).agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await database.stop()


def work_until_killed(path: Path, lines: int) -> dict[RunId, int]:
    """The newest number each run was told is stored, when the process was killed after so many of
    its lines."""
    command = [sys.executable, killed_writer.__file__, str(path), str(RUNS)]
    root = Path(__file__).parents[3]
    acknowledged: dict[RunId, int] = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=root, env={"PYTHONPATH": str(root)}
    ) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            run_id, last_seq = writer.stdout.readline().split()
            acknowledged[RunId(run_id)] = int(last_seq)
        writer.kill()
        # What it still managed to say counts too; a last line may be torn.
        for line in writer.stdout.read().splitlines(keepends=True):
            if line.endswith("\n"):
                run_id, last_seq = line.split()
                acknowledged[RunId(run_id)] = int(last_seq)
    return acknowledged


async def check_run(stores: Stores, run_id: RunId, *, at_least: int) -> None:
    """Gapless events, at least those acknowledged; every call settled and answered in step with
    them."""
    run = await stores.runs.get(ORG, run_id)
    assert run is not None
    assert run.status is RunStatus.IN_PROGRESS
    assert run.last_seq >= at_least
    events = await stores.runs.events(ORG, run_id, after_seq=0, limit=10_000)
    assert [event.seq for event in events] == list(range(1, run.last_seq + 1))
    calls = await stores.runs.tool_calls(ORG, run_id)
    # It works on until it is killed, and by then may have written more than a page.
    pages = await pages_of(partial(stores.threads.messages, ORG, a_thread_id(int(run_id[4:]))), limit=500)
    messages = list(chain.from_iterable(pages))
    asked = [use.id for message in messages for use in message.tool_uses]
    answered = [result.tool_id for message in messages for result in message.tool_results]
    assert asked == [call.id for call in calls]
    assert len(asked) - len(answered) in {0, 1}
    settled = [event for event in events if event.type == "tool.executed"]
    assert len(settled) == len([call for call in calls if call.result is not None])
