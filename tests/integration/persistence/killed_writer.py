"""A process that works on runs as fast as it can until it is killed, saying what it was told is
stored.

Arguments: the SQLite file, how many runs work at once. Every line is `RUN LAST_SEQ` after a commit.
"""

import asyncio
import sys
from pathlib import Path

from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import START, a_run, a_run_id, a_settled_call, a_thread, a_thread_id, a_tool_call
from tests.contract.run_steps import answer_step, reply_step, settle_step, start_and_claim
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores


async def work(stores: Stores, number: int) -> None:
    """One run, turn after turn, for ever."""
    thread_id, run_id = a_thread_id(number), a_run_id(number)
    await stores.threads.add(a_thread(thread_id))
    claimed = await start_and_claim(stores, a_run(run_id, thread_id=thread_id))
    turn = 0
    while True:
        turn += 1
        call = a_tool_call(run_id=run_id, turn=turn)
        settled = a_settled_call(call, at=START)
        await stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
        await stores.journal.commit(claimed.lease, settle_step(claimed.run, settled))
        settled = (await stores.runs.tool_calls(claimed.run.organization_id, run_id))[-1]
        outcome = await stores.journal.commit(claimed.lease, answer_step(claimed.run, settled))
        sys.stdout.write(f"{run_id} {outcome.last_seq}\n")
        sys.stdout.flush()


async def main() -> None:
    database = SqliteDatabase(Path(sys.argv[1]))
    await database.start()
    stores = sql_stores(database)
    async with asyncio.TaskGroup() as group:
        for number in range(1, int(sys.argv[2]) + 1):
            group.create_task(work(stores, number))


if __name__ == "__main__":
    asyncio.run(main())
