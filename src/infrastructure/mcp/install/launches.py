"""Start commands of installed servers, from their installations, read at each start."""

import os
from pathlib import Path

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.mcp.install.directories import InstallDirectories, Manifest
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.install.npm import MODULES
from infrastructure.mcp.install.oci_images import pinned_image
from infrastructure.mcp.install.python_packages import ENVIRONMENT, PYTHON
from infrastructure.mcp.transports.launch import Launch, launch_in_place

CONTENT = "content"
"""Directory of a custom server's copy in its installation."""


class NoSuchCommandError(Exception):
    """The installation lacks the requested command, or has several and none is requested. The
    message is safe to show."""


class InstalledLaunches:
    """Start commands: of installed servers from their installations, of others from their
    configuration."""

    def __init__(self, *, directories: InstallDirectories, node: NodeRuntime) -> None:
        self._directories = directories
        self._node = node

    def of(self, server: McpServer) -> Launch:
        """Raises McpFailure NOT_INSTALLED, or NOT_CONNECTED if the installation has no such
        command."""
        if not server.config.needs_installation:
            return launch_in_place(server)
        installation = server.installation
        manifest = self._directories.manifest(installation.location) if installation is not None else None
        if installation is None or manifest is None:
            raise McpFailure(McpFailureKind.NOT_INSTALLED, "MCP server not installed.")
        try:
            return self.launch(server.config, manifest, self._directories.path(installation.location))
        except NoSuchCommandError as exc:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, str(exc)) from exc

    def launch(self, config: McpServerConfig, manifest: Manifest, place: Path) -> Launch:
        """The start command for an installation at `place`. Raises NoSuchCommandError."""
        match config.kind:
            case McpServerKind.NPM:
                node = self._node.node()
                if node is None:
                    raise NoSuchCommandError("There is no Node.js on this machine.")
                own = (place / MODULES,)
                return Launch(
                    command=node, args=(_command(config, manifest, place), *config.args), place=place, own=own
                )
            case McpServerKind.PYTHON:
                scripts = place / ENVIRONMENT / "bin"
                if config.command is None and config.args[:1] == ("-m",):
                    # Without -P, a module in the working directory would replace the package's.
                    command, args = str(place / PYTHON), ("-P", *config.args)
                else:
                    command, args = _command(config, manifest, place), config.args
                own = (place / ENVIRONMENT,)
                return Launch(command=command, args=args, path_entries=(scripts,), place=place, own=own)
            case McpServerKind.OCI:
                return Launch(command=pinned_image(manifest), args=config.args, place=place)
            case _:
                return _of_copy(config, manifest, place / CONTENT)


def _command(config: McpServerConfig, manifest: Manifest, place: Path) -> str:
    return str(place / manifest.commands[chosen_command(config.command, manifest)])


def chosen_command(wanted: str | None, manifest: Manifest) -> str:
    """The package's command to start. Raises NoSuchCommandError."""
    commands = manifest.commands
    if wanted is not None:
        if wanted in commands:
            return wanted
        raise NoSuchCommandError(f"The package has no command {wanted!r}; it has {_listed(commands)}.")
    preferred = {_plain(name): name for name in commands}.get(_plain(manifest.preferred or ""))
    if preferred is not None:
        return preferred
    if len(set(commands.values())) == 1:
        return next(iter(commands))
    if commands:
        raise NoSuchCommandError(f"The package has several commands: set `command` to one of {_listed(commands)}.")
    raise NoSuchCommandError("The package has no command to start.")


def _of_copy(config: McpServerConfig, manifest: Manifest, content: Path) -> Launch:
    name = config.command or manifest.preferred
    if name is None:
        raise NoSuchCommandError("What was copied is not one executable: set `command` to what starts it.")
    own = content / name
    # A command of the machine, such as an interpreter, has the copy as its working directory.
    is_own = not Path(name).is_absolute() and own.resolve().is_relative_to(content.resolve()) and own.is_file()
    if is_own and not os.access(own, os.X_OK):
        raise NoSuchCommandError(f"{name!r} in the copy is not executable.")
    command = str(own) if is_own else name
    return Launch(command=command, args=config.args, cwd=content, place=content.parent, own=(content,))


def _plain(name: str) -> str:
    """Python normalizes names of packages and commands in these characters."""
    return name.lower().replace("_", "-").replace(".", "-")


def _listed(commands: dict[str, str]) -> str:
    return ", ".join(sorted(commands)) or "none"
