"""Installs npm packages with npm into the server's own directory."""

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated

import msgspec

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from domain.mcp.packages import npm_package
from domain.mcp.server import McpServerConfig
from infrastructure.mcp.install.copying import require_file
from infrastructure.mcp.install.directories import Manifest
from infrastructure.mcp.install.job import Ended, InstallJob
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.install.npm_lock import NpmLock, UnusableLockError
from infrastructure.mcp.install.package_files import read_file, read_json, write_file

_UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONN(REFUSED|RESET)|E?TIMEDOUT|E(NET|HOST)UNREACH|ERR_SOCKET_TIMEOUT|FETCH_ERROR"
)
_UNTRUSTED = re.compile(r"CERT|UNABLE_TO_(GET|VERIFY)|SSL")
_REFUSED = ("E401", "E403", "ENEEDAUTH")
MODULES = "node_modules"
_LOCK = "package-lock.json"
_DESCRIPTION = "package.json"
_OPTIONS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--omit=dev",
    "--no-update-notifier",
    "--fetch-retries=2",
    "--fetch-retry-mintimeout=500",
    "--fetch-retry-maxtimeout=5000",
    "--loglevel=http",
)

_Text = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*\Z", max_length=4096)]


class _Wanted(msgspec.Struct):
    dependencies: dict[str, str]


class _Described(msgspec.Struct):
    """What a package says of itself."""

    version: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    bin: dict[_Text, _Text] | _Text | None = None


class _Locked(msgspec.Struct):
    version: str | None = None
    integrity: str | None = None


class _Lock(msgspec.Struct):
    packages: dict[str, _Locked]


class NpmPackages:
    """Installs from npm's configured registry or a local file. Scripts of packages do not run."""

    def __init__(self, *, node: NodeRuntime) -> None:
        self._node = node

    async def install(
        self, config: McpServerConfig, target: Path, job: InstallJob, lock: str | None = None
    ) -> Manifest:
        """Install the package, or exactly what the `lock` of an earlier installation has. Raises
        McpInstallFailure."""
        assert config.package is not None  # validated by the configuration
        package = npm_package(config.package, config.version)
        recorded = None if lock is None else _usable(lock)
        npm = self._node.npm()
        if npm is None or self._node.node() is None:
            raise McpInstallFailure(
                McpInstallFailureKind.RUNTIME_MISSING,
                "There is no Node.js with npm on this machine; install it, or Dragoman with its extra `node`.",
            )
        if package.name is None:
            require_file(package.specifier)
        # With a package.json, npm uses the working directory; its option --prefix would move its
        # global settings.
        wanted = {} if recorded is None else {"dependencies": recorded.wanted}
        described = json.dumps({**wanted, "private": True})
        await asyncio.to_thread(write_file, target, _DESCRIPTION, described)
        if recorded is not None:
            await asyncio.to_thread(write_file, target, _LOCK, recorded.text)
        job.step("downloading", until=90)
        what = ("install", *_OPTIONS, "--save-exact", "--", package.specifier) if lock is None else ("ci", *_OPTIONS)
        ended = await job.run(*npm, *what, cwd=target, env={"PATH": self._node.search_path})
        if ended.status:
            raise _failure(ended, package.specifier)
        job.step("checking", until=100)
        manifest = await asyncio.to_thread(_manifest, target, is_file=package.name is None)
        if manifest.lock is None and package.name is not None:
            job.note("not all packages are of registries with hashes: other machines install the version, without lock")
        return manifest


def _manifest(target: Path, *, is_file: bool) -> Manifest:
    name = next(iter(read_json(target, _DESCRIPTION, _Wanted).dependencies), "")
    described = read_json(target, f"{MODULES}/{name}/{_DESCRIPTION}", _Described)
    unscoped = name.rpartition("/")[2]
    stated = described.bin or {}
    commands = {unscoped: stated} if isinstance(stated, str) else stated
    root = target / MODULES / name
    locked = _locked(target)
    return Manifest(
        version=described.version,
        commands={
            command: str((root / path).resolve().relative_to(target.resolve()))
            for command, path in commands.items()
            if (root / path).resolve().is_relative_to(target.resolve()) and (root / path).is_file()
        },
        preferred=unscoped,
        packages={place: str(entry.version) for place, entry in locked.items()},
        hashes={place: [entry.integrity] for place, entry in locked.items() if entry.integrity is not None},
        lock=None if is_file else _recordable(target),
    )


def _locked(target: Path) -> dict[str, _Locked]:
    """The lock entries, by place in the tree since a package may have several versions."""
    packages = read_json(target, _LOCK, _Lock).packages
    return {place.removeprefix(f"{MODULES}/"): entry for place, entry in packages.items() if place}


def _recordable(target: Path) -> str | None:
    try:
        return NpmLock.parsed(read_file(target, _LOCK)).text
    except UnusableLockError:
        return None


def _usable(recorded: str) -> NpmLock:
    try:
        return NpmLock.parsed(recorded)
    except UnusableLockError as exc:
        raise McpInstallFailure(McpInstallFailureKind.FAILED, str(exc)) from exc


def _failure(ended: Ended, specifier: str) -> McpInstallFailure:
    codes = {
        line.rpartition(" ")[2] for line in ended.lines if " error code " in line or line.startswith("npm ERR! code")
    }
    kinds = McpInstallFailureKind
    if "E404" in codes:
        return McpInstallFailure(kinds.PACKAGE_NOT_FOUND, f"The registry has no npm package {specifier!r}.")
    if "ETARGET" in codes:
        return McpInstallFailure(kinds.VERSION_NOT_FOUND, f"The registry has no such version: {specifier!r}.")
    if any(_UNREACHABLE.search(code) for code in codes):
        return McpInstallFailure(kinds.REGISTRY_UNREACHABLE, "The npm registry cannot be reached.")
    if any(_UNTRUSTED.search(code) for code in codes):
        return McpInstallFailure(kinds.REGISTRY_UNREACHABLE, "The npm registry's certificate is not trusted.")
    if codes & {*_REFUSED}:
        return McpInstallFailure(kinds.REGISTRY_REFUSED, "The npm registry refused access.")
    if "ENOSPC" in codes:
        return McpInstallFailure(kinds.DISK_FULL, "There is no space left on the disk.")
    if "ERESOLVE" in codes:
        return McpInstallFailure(
            kinds.REQUIREMENTS_CONFLICT, f"What {specifier!r} depends on cannot be installed together."
        )
    return McpInstallFailure(kinds.FAILED, f"npm failed with status {ended.status}; see the server's log.")
