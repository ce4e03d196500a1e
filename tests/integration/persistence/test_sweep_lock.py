"""Release of the sweep lock of PostgreSQL."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

from infrastructure.persistence.engine.postgres.sweep_lock import PostgresSweepLock
from tests.databases import PostgresDatabases

_SOCKET = ".s.PGSQL.5432"
_TERMINATE = b"X\x00\x00\x00\x04"
"""The message with which a client ends its session."""


@asynccontextmanager
async def lingering_sessions(url: str) -> AsyncIterator[str]:
    """The URL of the same database through a relay that hides the end of each connection from the
    server. A slow server notices the end late; behind the relay it never does."""
    parsed = make_url(url)
    server_path = f"{parsed.query['host']}/{_SOCKET}"
    async with AsyncExitStack() as servers:

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            answers, server = await asyncio.open_unix_connection(server_path)
            servers.enter_context(closing(server))
            with closing(writer):
                answering = asyncio.create_task(_copied(answers, writer))
                await _copied(reader, server)
                answering.cancel()
                await asyncio.wait([answering])

        with tempfile.TemporaryDirectory(prefix="dragoman-relay-") as folder:
            async with await asyncio.start_unix_server(relay, Path(folder) / _SOCKET):
                yield parsed.set(query={**parsed.query, "host": folder}).render_as_string(hide_password=False)


async def _copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data.removesuffix(_TERMINATE))
            await target.drain()


@pytest.mark.requirement("E7")
async def test_the_lock_is_free_before_the_server_notices_the_closed_connection(
    postgres_databases: PostgresDatabases,
) -> None:
    with postgres_databases.fresh() as url:
        async with lingering_sessions(url) as slow_url:
            async with PostgresSweepLock(slow_url).taken() as ours:
                assert ours
            async with PostgresSweepLock(url).taken() as theirs:
                assert theirs


async def test_a_sweep_whose_connection_is_lost_ends_without_an_error(postgres_databases: PostgresDatabases) -> None:
    with postgres_databases.fresh() as url:
        async with PostgresSweepLock(url).taken() as ours:
            assert ours
            postgres_databases.end_sessions(wait_s=60)
        async with PostgresSweepLock(url).taken() as theirs:
            assert theirs
