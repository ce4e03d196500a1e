"""Checks of this machine and of the data directory, without the service."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Protocol

from infrastructure.settings import Settings
from interfaces.cli.diagnosis.finding import Finding, State, problem, warning, well
from interfaces.cli.loading import loading

_OLDEST_PYTHON = (3, 11)
_MIB = 1024 * 1024
_DISK_ERROR_MIB = 100
_DISK_WARNING_MIB = 1024
_KEY_FILES = ("admin.key", "secret.key")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def machine_findings(home: Path) -> Iterator[Finding]:
    """Python, Node.js, room on the disk that holds HOME, and the console's files."""
    yield python_finding(sys.version_info[:3])
    yield node_finding(shutil.which("node"))
    yield disk_finding(shutil.disk_usage(_nearest_existing(home)).free)
    yield console_finding()


class Confinement(Protocol):
    """How started MCP servers are confined, from `infrastructure.confinement.sandbox`."""

    @property
    def profile(self) -> str | None: ...
    @property
    def words(self) -> str: ...


def look_at_sandbox(settings: Settings) -> Confinement:
    with loading():
        from infrastructure.container import Container
    return Container(settings=settings).sandbox().report()


async def look_at_containers(settings: Settings) -> tuple[bool, str]:
    with loading():
        from infrastructure.container import Container
        from infrastructure.lifecycle import look_at_engine
    return await look_at_engine(Container(settings=settings))


def containers_finding(settings: Settings, *, found: bool, words: str) -> Finding:
    """The container engine, which only servers of kind oci need."""
    if found:
        return well("containers", words)
    if settings.mcp_sandbox != "container" and settings.mcp_container_engine in ("auto", "none"):
        return well("containers", "no container engine; only MCP servers of kind oci need one")
    return problem("containers", words, "MCP servers of kind oci are not started. See docs/guides/confinement.md.")


def sandbox_finding(held: Confinement, mode: str) -> Finding:
    if held.profile is not None:
        return well("sandbox", held.words)
    if mode == "off":
        return warning("sandbox", held.words, "Set DRAGOMAN_MCP_SANDBOX=auto where others register servers.")
    advice = "Servers of kind npm, python and custom are not started. See docs/guides/confinement.md."
    return problem("sandbox", held.words, advice)


def python_finding(version: tuple[int, ...]) -> Finding:
    text = ".".join(map(str, version))
    if version < _OLDEST_PYTHON:
        return problem("python", f"{text} is too old", "Install Python 3.11 or newer.")
    return well("python", text)


def node_finding(node: str | None) -> Finding:
    missing = "Install Node.js if you want to use MCP servers from npm; nothing else needs it."
    if node is None:
        return warning("node.js", "not found", missing)
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return warning("node.js", f"{node} does not run", missing)
    return well("node.js", f"{answer.stdout.strip()} ({node})")


def disk_finding(free_bytes: int) -> Finding:
    free = f"{free_bytes // _MIB} MiB free"
    if free_bytes < _DISK_ERROR_MIB * _MIB:
        return problem("disk", free, "Make room, or set DRAGOMAN_HOME to another disk: writes will soon fail.")
    if free_bytes < _DISK_WARNING_MIB * _MIB:
        return warning("disk", free, "Make room, or set DRAGOMAN_HOME to another disk.")
    return well("disk", free)


def home_findings(home: Path) -> Iterator[Finding]:
    """The data directory: existing, ours, and closed to others, with all its files."""
    try:
        mode = home.stat().st_mode
    except FileNotFoundError:
        yield warning(
            "home", f"{home} is not there yet", "The first command that needs it makes it; `dragoman serve` does."
        )
        return
    except OSError as exc:
        yield problem("home", f"{home} cannot be read: {exc.strerror}", "Set DRAGOMAN_HOME to a directory of yours.")
        return
    if not home_is_usable(home):
        yield problem(
            "home", f"{home} is no directory that can be written", "Set DRAGOMAN_HOME to a directory of yours."
        )
        return
    yield _closed_to_others("home", home, mode, "700")
    for path in sorted(home.iterdir()):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            continue  # a running service makes and removes files
        if stat.S_ISREG(mode):
            finding = _closed_to_others(path.name, path, mode, "600")
            if path.name in _KEY_FILES or finding.state is not State.OK:
                yield finding


def home_is_usable(home: Path) -> bool:
    """Whether the directory is fully accessible."""
    return home.is_dir() and os.access(home, os.R_OK | os.W_OK | os.X_OK)


def console_finding() -> Finding:
    package = resources.files("interfaces.console")
    styles, page = package / "static" / "console.css", package / "templates" / "base.html"
    if not (styles.is_file() and page.is_file()):
        return problem("console", "its pages are missing from this installation", "Install Dragoman again.")
    return well("console", "its pages are installed")


def _closed_to_others(check: str, path: Path, mode: int, wanted: str) -> Finding:
    shown = f"{path}, mode {stat.S_IMODE(mode):04o}"
    if mode & _OTHERS:
        return problem(check, f"{shown}: open to other users", f"chmod {wanted} {path}")
    return well(check, shown)


def _nearest_existing(path: Path) -> Path:
    return next(candidate for candidate in (path, *path.absolute().parents) if candidate.exists())
