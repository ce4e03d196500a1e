"""Installs Python packages with uv or pip into the server's own virtual environment."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from domain.mcp.packages import python_package
from domain.mcp.server import McpServerConfig
from infrastructure.mcp.install.copying import require_file
from infrastructure.mcp.install.directories import Manifest
from infrastructure.mcp.install.job import Ended, InstallJob
from infrastructure.mcp.install.package_files import read_file, read_json, write_file
from infrastructure.mcp.install.python_lock import (
    ArchiveHashes,
    PipReport,
    PythonLock,
    UnusableLockError,
    canonical_name,
)

ENVIRONMENT = "venv"
PYTHON = f"{ENVIRONMENT}/bin/python"

_WANTED = "requirements.in"
_LOCK = "requirements.txt"
_REPORT = "report.json"
_DESCRIPTION = "environment.json"
_DESCRIBE = Path(__file__).with_name("describe_environment.py")
_UNREACHABLE = re.compile(
    r"connection broken by|Failed to establish a new connection|NameResolutionError|Max retries exceeded"
    r"|Temporary failure in name resolution|ReadTimeoutError|SSLError|ProxyError"
)
_SOURCES = (".tar.gz", ".zip")
_WITHOUT_WHEELS = frozenset(
    {
        McpInstallFailureKind.PACKAGE_NOT_FOUND,
        McpInstallFailureKind.VERSION_NOT_FOUND,
        McpInstallFailureKind.REQUIREMENTS_CONFLICT,
    }
)
"""What it may mean that a package has no wheel that fits."""
_NONE_AT_ALL = re.compile(r"\(from versions: (none)?\)")
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^(?!\.\.?$)[^\x00-\x1f/]+$")]


class _Described(msgspec.Struct):
    """What describe_environment.py writes, or code of packages in its place."""

    name: _Word
    version: _Word
    commands: list[_Word]
    packages: Annotated[dict[_Word, _Word], msgspec.Meta(min_length=1)]


class PythonPackages:
    """Installs from the configured index of pip (or uv) or a local file.

    - `python` creates the environments; `uv` is used if present. If uv fails, pip tries again,
      because each has its own configured index. Without `has_pip`, each environment gets its own
      pip, which takes many seconds and 25 MB.
    - The newest versions that have wheels are installed, so that no code of a package runs where
      the operator's credentials are. Where that is not possible, packages are built, without
      credentials.
    - A lock is read before code of the packages that it names can run, and written again for each
      step that uses it.
    """

    def __init__(self, *, python: Path, has_pip: bool, uv: str | None) -> None:
        self._python = python
        self._has_pip = has_pip
        self._uv = uv

    async def install(
        self, config: McpServerConfig, target: Path, job: InstallJob, lock: str | None = None
    ) -> Manifest:
        """Install into `target`, which cannot be moved afterwards: the package, or exactly what the
        `lock` of an earlier installation has. Raises McpInstallFailure."""
        assert config.package is not None  # validated by the configuration
        package = python_package(config.package, config.version)
        first = package.requirements[0]
        recorded = None if lock is None else _usable(lock)
        if package.name is None:
            require_file(first)
        job.step("preparing", until=15)
        await self._make_environment(target, job)
        job.step("downloading", until=90)
        locked = await self._fill(target, package.requirements, job, recorded)
        job.step("checking", until=100)
        manifest = await self._described(target, package.name or first, locked.hashes, job)
        if package.name is None:
            return manifest
        installed = {canonical_name(name) for name in (package.name, *manifest.packages)}
        return replace(manifest, lock=locked.text) if installed - {"pip"} <= locked.hashes.keys() else manifest

    async def _make_environment(self, target: Path, job: InstallJob) -> None:
        ended = await job.run(
            str(self._python), "-I", "-m", "venv", "--without-pip", "--clear", ENVIRONMENT, cwd=target
        )
        if ended.status:
            raise _no_environment()

    async def _pip(self, target: Path, job: InstallJob) -> tuple[str, ...]:
        """The command that installs into the environment."""
        if self._has_pip:
            return str(self._python), "-I", "-m", "pip", "--python", PYTHON
        ended = await job.run(PYTHON, "-I", "-m", "ensurepip", "--default-pip", cwd=target)
        if ended.status:
            raise _no_environment()
        return PYTHON, "-I", "-m", "pip"

    async def _fill(
        self, target: Path, requirements: tuple[str, ...], job: InstallJob, lock: PythonLock | None
    ) -> PythonLock:
        """Install the requirements, or what the lock has; returns the lock."""
        if not requirements[0].endswith(_SOURCES):
            try:
                return await self._filled(target, requirements, job, lock, builds=False)
            except McpInstallFailure as failure:
                if failure.kind not in _WITHOUT_WHEELS:
                    raise
            job.note("not all packages have wheels; they are built, without credentials for indexes")
            await self._make_environment(target, job)
        return await self._filled(target, requirements, job, lock, builds=True)

    async def _filled(
        self, target: Path, requirements: tuple[str, ...], job: InstallJob, lock: PythonLock | None, *, builds: bool
    ) -> PythonLock:
        if self._uv is not None:
            filled = await self._filled_by_uv(self._uv, target, requirements, job, lock, builds=builds)
            if filled is not None:
                return filled
            job.note("uv failed; pip tries again")
            await self._make_environment(target, job)  # what uv has installed would run in pip's process
        if lock is not None:
            await asyncio.to_thread(write_file, target, _LOCK, lock.text)
        pip = await self._pip(target, job)
        options = ("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2", "--compile")
        wheels = () if builds else ("--only-binary=:all:",)
        wanted = ("--", *requirements) if lock is None else ("--require-hashes", "--requirement", _LOCK)
        arguments = ("install", *options, *wheels, "--report", _REPORT, *wanted)
        ended = await job.run(*pip, *arguments, cwd=target, runs_packages=builds)
        if ended.status:
            raise _failure(ended, requirements)
        return lock if lock is not None else await asyncio.to_thread(_reported, target)

    async def _filled_by_uv(
        self,
        uv: str,
        target: Path,
        requirements: tuple[str, ...],
        job: InstallJob,
        lock: PythonLock | None,
        *,
        builds: bool,
    ) -> PythonLock | None:
        """Lock the requirements, by which uv reports hashes, and install the lock. None if uv
        cannot."""
        options = ("--no-progress", "--python", PYTHON, *(() if builds else ("--no-build",)))
        if lock is None:
            wanted = "".join(f"{requirement}\n" for requirement in requirements)
            await asyncio.to_thread(write_file, target, _WANTED, wanted)
            locking = ("--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--output-file", _LOCK, _WANTED)
            compiling = (uv, "pip", "compile", *options, *locking)
            if (await job.run(*compiling, cwd=target, runs_packages=builds)).status:
                return None
            lock = await asyncio.to_thread(_compiled, target, requirements[0])
            if lock is None:
                return None
        await asyncio.to_thread(write_file, target, _LOCK, lock.text)
        # Copies: a server that writes to its own files must not change others through links to uv's
        # cache.
        filling = ("--link-mode=copy", "--require-hashes", "--requirements", _LOCK)
        installing = (uv, "pip", "install", *options, *filling)
        if (await job.run(*installing, cwd=target, runs_packages=builds)).status:
            return None
        # Compiling runs the environment's Python, which runs code of packages as it starts.
        ended = await job.run(*installing, "--compile-bytecode", "--offline", cwd=target, runs_packages=True)
        return None if ended.status else lock

    async def _described(self, target: Path, asked: str, hashes: ArchiveHashes, job: InstallJob) -> Manifest:
        output = str(target / _DESCRIPTION)
        ended = await job.run(PYTHON, "-I", str(_DESCRIBE), asked, output, cwd=target, runs_packages=True)
        if ended.status:
            raise McpInstallFailure(
                McpInstallFailureKind.FAILED, "The package was installed, but cannot be found in its environment."
            )
        described = await asyncio.to_thread(read_json, target, _DESCRIPTION, _Described)
        if asked in hashes:  # a file, which uv does not list by name
            hashes = {**hashes, canonical_name(described.name): hashes[asked]}
        return Manifest(
            version=described.version,
            commands={command: f"{ENVIRONMENT}/bin/{command}" for command in described.commands},
            preferred=described.name,
            packages=described.packages,
            hashes={
                name: hashes[canonical_name(name)] for name in described.packages if canonical_name(name) in hashes
            },
        )


def _usable(recorded: str) -> PythonLock:
    try:
        return PythonLock.parsed(recorded)
    except UnusableLockError as exc:
        raise McpInstallFailure(McpInstallFailureKind.FAILED, str(exc)) from exc


def _compiled(target: Path, first: str) -> PythonLock | None:
    """The lock that uv has written; None if not all archives have hashes."""
    try:
        return PythonLock.parsed(read_file(target, _LOCK).decode(), file=first if first.startswith("/") else None)
    except ValueError:
        return None


def _reported(target: Path) -> PythonLock:
    try:
        return PythonLock.reported(read_json(target, _REPORT, PipReport))
    except UnusableLockError as exc:
        raise McpInstallFailure(McpInstallFailureKind.FAILED, str(exc)) from exc


def _no_environment() -> McpInstallFailure:
    return McpInstallFailure(
        McpInstallFailureKind.RUNTIME_MISSING,
        "No Python environment can be created: Python's modules venv and ensurepip are needed "
        "(on Debian: apt-get install python3-venv).",
    )


def _failure(ended: Ended, requirements: tuple[str, ...]) -> McpInstallFailure:
    kinds, text, shown = McpInstallFailureKind, ended.text, " ".join(requirements)
    if "No space left on device" in text:
        return McpInstallFailure(kinds.DISK_FULL, "There is no space left on the disk.")
    if "No matching distribution found for " in text:
        # pip reports an unreachable registry like a missing package.
        if _UNREACHABLE.search(text):
            return McpInstallFailure(kinds.REGISTRY_UNREACHABLE, "The Python package registry cannot be reached.")
        wanted = text.rpartition("No matching distribution found for ")[2].partition("\n")[0].strip()
        if "require a different python version" in text:
            return McpInstallFailure(
                kinds.REQUIREMENTS_CONFLICT, f"No version of {wanted!r} runs on this machine's version of Python."
            )
        if _NONE_AT_ALL.search(text):
            return McpInstallFailure(kinds.PACKAGE_NOT_FOUND, f"The registry has no Python package {wanted!r}.")
        return McpInstallFailure(kinds.VERSION_NOT_FOUND, f"The registry has no version that fits {wanted!r}.")
    if "ResolutionImpossible" in text:
        return McpInstallFailure(kinds.REQUIREMENTS_CONFLICT, f"No versions satisfy all of {shown!r} together.")
    if _UNREACHABLE.search(text):
        return McpInstallFailure(kinds.REGISTRY_UNREACHABLE, "The Python package registry cannot be reached.")
    if re.search(r"\b40[13] (Client Error|Error)", text):
        return McpInstallFailure(kinds.REGISTRY_REFUSED, "The Python package registry refused access.")
    return McpInstallFailure(kinds.FAILED, f"pip failed with status {ended.status}; see the server's log.")
