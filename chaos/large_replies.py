"""Serves the hostile server of the tests whose replies are as large as they are asked for:
`python -m chaos.large_replies WAY` prints the port."""

import asyncio
import sys
from urllib.parse import urlsplit

from tests.integration.mcp.test_hostile_replies import HostileServer, as_event, as_it_is


def of_way(way: str) -> HostileServer:
    """`json`, `events` or `legacy`."""
    if way == "json":
        return HostileServer("application/json", as_it_is)
    return HostileServer("text/event-stream", as_event, legacy=way == "legacy")


async def main(way: str) -> None:
    """Until it is killed."""
    async with of_way(way).serve() as server:
        sys.stdout.write(f"{urlsplit(server.config.url or '').port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
