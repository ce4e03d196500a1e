"""Installs Python packages with uv or pip into the server's own virtual environment."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from application.mcp.ports import McpInstallFailure, McpInstallFailureKind
from domain.mcp.packages import python_package
from domain.mcp.server import McpServerConfig
from infrastructure.mcp.install.archive_hashes import (
    ArchiveHashes,
    canonical_name,
    lock_of_report,
    locked_hashes,
)
from infrastructure.mcp.install.copying import require_file
from infrastructure.mcp.install.directories import Manifest
from infrastructure.mcp.install.job import Ended, InstallJob

ENVIRONMENT = "venv"
PYTHON = f"{ENVIRONMENT}/bin/python"

_WANTED = "requirements.in"
_LOCK = "requirements.txt"
_REPORT = "report.json"
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


class PythonPackages:
    """Installs from the configured index of pip (or uv) or a local file.

    - `python` creates the environments; `uv` is used if present. If uv fails, pip tries again, because each has its own
      configured index. Without `has_pip`, each environment gets its own pip, which takes many seconds and 25 MB.
    - The newest versions that have wheels are installed, so that no code of a package runs where the operator's
      credentials are. Where that is not possible, packages are built, without credentials.
    """

    def __init__(self, *, python: Path, has_pip: bool, uv: str | None) -> None:
        self._python = python
        self._has_pip = has_pip
        self._uv = uv

    async def install(
        self, config: McpServerConfig, target: Path, job: InstallJob, lock: str | None = None
    ) -> Manifest:
        """Install into `target`, which cannot be moved afterwards: the package, or exactly what the `lock` of an earlier
        installation has. Raises McpInstallFailure."""
        assert config.package is not None  # validated by the configuration
        package = python_package(config.package, config.version)
        first = package.requirements[0]
        if package.name is None:
            require_file(first)
        job.step("preparing", until=15)
        await self._make_environment(target, job)
        job.step("downloading", until=90)
        lock = await self._fill(target, package.requirements, job, lock)
        job.step("checking", until=100)
        manifest = await self._described(target, package.name or first, locked_hashes(lock), job)
        is_whole = {canonical_name(name) for name in manifest.packages} - {"pip"} <= locked_hashes(lock).keys()
        return replace(manifest, lock=lock) if package.name is not None and is_whole else manifest

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

    async def _fill(self, target: Path, requirements: tuple[str, ...], job: InstallJob, lock: str | None) -> str:
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
        self, target: Path, requirements: tuple[str, ...], job: InstallJob, lock: str | None, *, builds: bool
    ) -> str:
        if lock is not None:
            (target / _LOCK).write_text(lock, encoding="utf-8")
        if self._uv is not None:
            if await self._fill_by_uv(self._uv, target, requirements, job, lock, builds=builds):
                return (target / _LOCK).read_text(encoding="utf-8")
            job.note("uv failed; pip tries again")
            await self._make_environment(target, job)  # what uv has installed would run in pip's process
        pip = await self._pip(target, job)
        options = ("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2", "--compile")
        wheels = () if builds else ("--only-binary=:all:",)
        wanted = ("--", *requirements) if lock is None else ("--require-hashes", "--requirement", _LOCK)
        arguments = ("install", *options, *wheels, "--report", _REPORT, *wanted)
        ended = await job.run(*pip, *arguments, cwd=target, runs_packages=builds)
        if ended.status:
            raise _failure(ended, requirements)
        return lock or lock_of_report(json.loads((target / _REPORT).read_text(encoding="utf-8")))

    async def _fill_by_uv(
        self, uv: str, target: Path, requirements: tuple[str, ...], job: InstallJob, lock: str | None, *, builds: bool
    ) -> bool:
        """Lock the requirements, by which uv reports hashes, and install the lock."""
        (target / _WANTED).write_text("".join(f"{requirement}\n" for requirement in requirements), encoding="utf-8")
        options = ("--no-progress", "--python", PYTHON, *(() if builds else ("--no-build",)))
        locking = ("--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--output-file", _LOCK, _WANTED)
        compiling = (uv, "pip", "compile", *options, *locking)
        if lock is None and (await job.run(*compiling, cwd=target, runs_packages=builds)).status:
            return False
        # Copies: a server that writes to its own files must not change others through links to uv's
        # cache.
        filling = ("--link-mode=copy", "--require-hashes", "--requirements", _LOCK)
        installing = (uv, "pip", "install", *options, *filling)
        if (await job.run(*installing, cwd=target, runs_packages=builds)).status:
            return False
        # Compiling runs the environment's Python, which runs code of packages as it starts.
        return not (
            await job.run(*installing, "--compile-bytecode", "--offline", cwd=target, runs_packages=True)
        ).status

    async def _described(self, target: Path, asked: str, hashes: ArchiveHashes, job: InstallJob) -> Manifest:
        description = target / "environment.json"
        ended = await job.run(PYTHON, "-I", str(_DESCRIBE), asked, str(description), cwd=target, runs_packages=True)
        if ended.status:
            raise McpInstallFailure(
                McpInstallFailureKind.FAILED, "The package was installed, but cannot be found in its environment."
            )
        described = cast("dict[str, Any]", json.loads(description.read_text(encoding="utf-8")))
        commands = cast("list[str]", described["commands"])
        packages = cast("dict[str, str]", described["packages"])
        if asked in hashes:  # a file, which uv does not list by name
            hashes = {**hashes, canonical_name(described["name"]): hashes[asked]}
        return Manifest(
            version=described["version"],
            commands={command: f"{ENVIRONMENT}/bin/{command}" for command in commands},
            preferred=described["name"],
            packages=packages,
            hashes={name: hashes[canonical_name(name)] for name in packages if canonical_name(name) in hashes},
        )


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
