"""Port of container engines, with its values. Above: transport and installer of servers of kind
`oci`. Below: `engine_api.py`."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from domain.mcp.images import OciImage


class EngineFault(StrEnum):
    UNREACHABLE = "unreachable"
    """There is no engine, or it does not answer."""
    NOT_FOUND = "not_found"
    """There is no such image."""
    REFUSED = "refused"
    """The registry requires credentials, or the engine refuses the request."""
    REGISTRY_UNREACHABLE = "registry_unreachable"


class EngineError(Exception):
    """The engine or its registry failed. The message is safe to show; `said` is the engine's own
    text, cleaned, for the operator's log of the server."""

    def __init__(self, fault: EngineFault, message: str, *, said: str = "") -> None:
        super().__init__(message)
        self.fault = fault
        self.said = said


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """What a container runs and may use.

    - `image` is pinned by its digest; `args` replace the image's default arguments, if there are
      any.
    - `data` is the one directory of this machine that it writes, at `DATA_PATH`.
    - `memory` in bytes and `processes` in number; 0 for no limit.
    - `network`: whether it has one.
    - `labels` are those by which it is found again.
    """

    image: str
    args: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    data: Path
    memory: int
    processes: int
    cpus: float
    network: bool
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledImage:
    """`digest` is that of its content. `was_there`: the engine had it before, under whatever
    name."""

    digest: str
    was_there: bool


DATA_PATH = "/data"
"""Where a server in a container has its data directory. It is its HOME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """`status` is the exit code of its first process, or 128 + N for signal N."""

    status: int
    out_of_memory: bool


class Container(Protocol):
    """A started container. All methods raise EngineError."""

    @property
    def attached(self) -> socket.socket:
        """The connection to its stdin, and to its outputs in frames (`output_frames.py`). The taker
        closes it."""
        ...

    async def ended(self) -> ContainerEnd:
        """Wait for its end."""
        ...

    async def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        ...

    async def remove(self) -> None:
        """End it, if it runs, and remove what the engine has of it."""
        ...


class ContainerEngine(Protocol):
    """A container engine of this machine. All methods raise EngineError."""

    async def describe(self) -> str:
        """Name, version and address, for operators."""
        ...

    async def pull(self, image: OciImage, on_progress: Callable[[str], None]) -> PulledImage:
        """Fetch an image from its registry. `on_progress` gets lines of text."""
        ...

    async def start(self, spec: ContainerSpec) -> Container:
        """Create, attach to and start a container. Nothing remains of one that fails."""
        ...

    async def remove_all(self, label: str, is_meant: Callable[[str], bool]) -> int:
        """Remove the containers with a label whose value `is_meant`; returns how many."""
        ...

    async def remove_image(self, image: str) -> bool:
        """Remove an image, named with its digest. False leaves it: a container or another name has
        it."""
        ...
