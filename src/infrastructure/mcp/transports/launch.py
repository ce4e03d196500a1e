"""Start commands of servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.network import HostAllowlist
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A start command; `path_entries` come first in the server's PATH, `cwd` is its working
    directory, if set. `place` is its installation, and `own` the directories in it that it may
    write to. In a container, `command` is the image."""

    command: str
    args: tuple[str, ...]
    cwd: Path | None = None
    path_entries: tuple[Path, ...] = ()
    place: Path | None = None
    own: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """The launcher's options for a process, and the variables that name its directories. Both are
    empty without a sandbox. `without` are variables that it does not get. With `hosts`, a proxy to
    these is its only network."""

    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    hosts: HostAllowlist | None = None


def launch_in_place(server: McpServer) -> Launch:
    """The configured command. Raises McpFailure NOT_INSTALLED for a server that requires
    installation."""
    if server.config.needs_installation or server.config.command is None:
        raise McpFailure(McpFailureKind.NOT_INSTALLED, "MCP server not installed.")
    return Launch(command=server.config.command, args=server.config.args)
