"""Images and containers of the container engine's double. A container is a process of this
machine."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeImage:
    """An image in the registry: its content's digest, the command that a container of it executes,
    and its volumes."""

    digest: str
    command: tuple[str, ...]
    volumes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """What the engine calls it, which is not the digest that the registry has."""
        return f"sha256:{self.digest.removeprefix('sha256:')[::-1]}"


@dataclass(slots=True, kw_only=True)
class FakeContainer:
    """`body` is what it was created from."""

    id: str
    name: str
    body: dict[str, Any]
    command: tuple[str, ...]
    state: str = "created"
    status: int = 0
    out_of_memory: bool = False
    process: asyncio.subprocess.Process | None = None
    attached: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def host(self) -> dict[str, Any]:
        return dict(self.body["HostConfig"])


def end_with(container: FakeContainer, number: signal.Signals) -> None:
    if container.process is not None and container.process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(container.process.pid, number)


async def fed(reader: asyncio.StreamReader, stdin: asyncio.StreamWriter) -> None:
    """What arrives goes to the container; its stdin ends with the connection (StdinOnce)."""
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            stdin.write(data)
            await stdin.drain()
    stdin.close()


async def framed(kind: int, output: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await output.read(32_768):
        with suppress(ConnectionError):
            writer.write(bytes([kind, 0, 0, 0]) + len(data).to_bytes(4) + data)
            await writer.drain()


def images(**commands: tuple[str, ...]) -> Mapping[str, FakeImage]:
    """Images of the registry by name: `mcp/NAME:latest`, with digests that differ."""
    return {
        f"mcp/{name}:latest": FakeImage(digest=f"sha256:{number:064x}", command=command)
        for number, (name, command) in enumerate(commands.items(), 1)
    }
