"""How many files a step of a run passes on its way to the disk. Each file that the way enters, or
enters again, counts."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import FrameType

from domain.audit.event import AuditAction
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.engine.sqlite.threads import ServingThread, raw_of
from tests.builders import a_thread, a_tool_call, an_agent, an_audit_event
from tests.contract.run_steps import reply_step, start_and_claim
from tests.contract.sql_legs import sql_stores

SOURCES = Path(__file__).parents[3] / "src"
MOST = 12
FROM_THE_SESSION = 1
"""`RunSession.advance`, which calls the journal."""


def files_of(frame: FrameType | None) -> list[str]:
    """The files of ours that have called each other, the outermost first."""

    def outwards() -> Iterator[str]:
        at = frame
        while at is not None:
            yield at.f_code.co_filename
            at = at.f_back

    ours = [file for file in outwards() if file.startswith(str(SOURCES))]
    return ours[::-1]


async def test_a_step_reaches_the_disk_in_a_dozen_stays(sqlite: SqliteDatabase) -> None:
    stores = sql_stores(sqlite)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    claimed = await start_and_claim(stores)
    to_the_writer: list[str] = []
    in_the_writer: list[list[str]] = []
    put = ServingThread.put.__code__

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is put and not to_the_writer:
            to_the_writer.extend(files_of(frame))

    def note(_: str) -> None:
        in_the_writer.append(files_of(sys._getframe()))

    await sqlite.write(lambda connection: raw_of(connection).set_trace_callback(note), scope=SYSTEM)
    sys.setprofile(profile)
    try:
        await stores.journal.commit(claimed.lease, reply_step(claimed.run, a_tool_call()))
    finally:
        sys.setprofile(None)
    longest = max(in_the_writer, key=len)
    stays = [file for file, _ in groupby([*to_the_writer, *longest])]
    assert stays[0].endswith("runs/journal.py")
    assert stays[-1].endswith("engine/prepared.py")
    assert FROM_THE_SESSION + len(stays) <= MOST, "\n".join(stays)
