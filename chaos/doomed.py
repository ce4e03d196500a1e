"""The process that is killed: `python -m chaos.doomed` reads orders, a line of JSON each, and forks
a child for each of them.

Forking saves every child the imports, which are most of what a start costs. Nothing but imports
happens before.
"""

import asyncio
import json
import os
import sys
import traceback
from pathlib import Path

import uvloop

from chaos.deadly import Boundaries
from chaos.scenario import Place, drive, service, worker

LINGER_S = 1.5
"""What follows a run, such as sealing its audit trail, has boundaries too."""


async def serve(place: Place, boundaries: Boundaries, key: str, *, executes: bool) -> None:
    """The service and its client, until the run has ended."""
    async with service(place, boundaries, worker=executes) as client:
        await drive(client, place, key)
        await asyncio.sleep(LINGER_S)
        os._exit(0)


async def work(place: Place, boundaries: Boundaries) -> None:
    """A worker, until it is killed."""
    async with worker(place, boundaries):
        await asyncio.Event().wait()


def child(order: dict[str, str]) -> None:
    """Do as ordered; never returns."""
    place = Place(folder=Path(order["folder"]), database_url=order.get("database_url"))
    boundaries = Boundaries(place.trace, fatal=order.get("fatal"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if order["role"] == "worker":
            runner.run(work(place, boundaries))
        else:
            runner.run(serve(place, boundaries, order["key"], executes=order["role"] == "service"))


def main() -> None:
    """Answer each order with the child's id, and with its exit status once it has ended."""
    for line in sys.stdin:
        child_id = os.fork()
        if child_id == 0:
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(2, 1)  # stdout is for the answers
                child(json.loads(line))
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(1)
        print(child_id, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child_id, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
