"""A rate limit over four services on one PostgreSQL: how many requests of one key pass.

`python -m benchmarks.limits` prints it; `make bench` too.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.figures import Budget, held
from benchmarks.raw_http import RawClient
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.postgres import cluster
from tests.e2e.service import Service

SERVICES, CLIENTS_EACH = 4, 2
PER_S = 100
DRAINING_S, COUNTED_S = 2.0, 10.0
_PAUSE_S = 0.005
_TOO_MANY = 429
_OFF_BY = Budget(what=f"off a limit of {PER_S} requests/s over {SERVICES} services", limit=5, unit="requests/s")


@contextmanager
def services() -> Iterator[tuple[list[Service], str]]:
    """Four services on one database, and a key with a limit."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        databases = stack.enter_context(PostgresDatabases(stack.enter_context(postgres_server())).prepared())
        processes = stack.enter_context(cluster(stack.enter_context(databases.fresh()), folder))
        started = [processes.serve(f"api-{number}", "--no-worker") for number in range(SERVICES)]
        limit = {"calls": PER_S, "per_s": 1}
        key = started[0].call("POST", "/api-keys", {"name": "limited", "role": "runner", "rate_limit": limit})
        yield started, str(key["token"])


async def passed(services: Sequence[Service], token: str) -> tuple[int, int]:
    """Requests that passed in COUNTED_S of a flood at all services, and all that were sent."""
    begin = time.perf_counter() + DRAINING_S
    end = begin + COUNTED_S
    counted = sent = 0

    async def client(service: Service) -> None:
        nonlocal counted, sent
        connection = RawClient(int(service.url.rpartition(":")[2]))
        while (now := time.perf_counter()) < end:
            # An invalid body: what passes the limit costs nothing more.
            status, _ = await connection.post("/v1/runs/wait", b"{}", f"Authorization: Bearer {token}\r\n")
            if now >= begin:
                sent += 1
                counted += status != _TOO_MANY
            if status == _TOO_MANY:
                await asyncio.sleep(_PAUSE_S)
        await connection.close()

    async with asyncio.TaskGroup() as group:
        for service in services:
            for _ in range(CLIENTS_EACH):
                group.create_task(client(service))
    return counted, sent


def report() -> list[str]:
    """Everything measured, as lines of docs/performance.md."""
    with services() as (started, token):
        counted, sent = asyncio.run(passed(started, token))
    per_s = counted / COUNTED_S
    return [
        f"One key with a limit of {PER_S} requests/s floods {SERVICES} services with {sent / COUNTED_S:,.0f} requests/s for"
        f" {COUNTED_S:.0f} s: {per_s:.1f} pass per second (`python -m benchmarks.limits`).",
        *held((_OFF_BY, abs(per_s - PER_S))),
    ]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*report(), ""]))
