"""Copies a custom server, file or directory, without symlinks to outside."""

import hashlib
import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind

_CHUNK_BYTES = 1024 * 1024
_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Limits of a custom server."""

    max_files: int = 50_000
    max_bytes: int = 1024**3


class CopyStopped(Exception):
    pass


class TreeCopy:
    """One copy of `source` to `target`, which must not exist. Runs in a thread; `stop` may be
    called from another."""

    def __init__(self, source: Path, target: Path, limits: CopyLimits) -> None:
        self._source = source
        self._target = target
        self._limits = limits
        self._files = 0
        self._bytes = 0
        self._digest = hashlib.sha256()
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> str:
        """Copy, and return the digest over names, kinds and contents: `sha256:` and hex. Modes are
        copied only as executable or not. Raises McpInstallFailure SOURCE_UNUSABLE, OSError,
        CopyStopped."""
        status = self._source.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise _unusable("is a symbolic link")
        if stat.S_ISDIR(status.st_mode):
            self._directory(self._source, self._target, Path())
        else:
            self._target.mkdir(mode=0o700)
            self._entry(self._source, self._target / self._source.name, Path(self._source.name))
        return f"sha256:{self._digest.hexdigest()[:_DIGEST_CHARACTERS]}"

    def _directory(self, source: Path, target: Path, name: Path) -> None:
        target.mkdir(mode=0o700)
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries)
        for entry in names:
            self._entry(source / entry, target / entry, name / entry)

    def _entry(self, source: Path, target: Path, name: Path) -> None:
        if self._stopped.is_set():
            raise CopyStopped
        self._files += 1
        if self._files > self._limits.max_files:
            raise _unusable(f"has more than {self._limits.max_files} files")
        mode = source.lstat().st_mode
        if stat.S_ISLNK(mode):
            self._link(source, target, name)
        elif stat.S_ISDIR(mode):
            self._note("directory", name)
            self._directory(source, target, name)
        elif stat.S_ISREG(mode):
            self._file(source, target, name)
        else:
            raise _unusable(f"holds {str(name)!r}, which is neither a file nor a directory nor a link")

    def _link(self, source: Path, target: Path, name: Path) -> None:
        destination = source.readlink()
        inside = os.path.normpath(name.parent / destination)
        if destination.is_absolute() or inside == ".." or inside.startswith("../"):
            raise _unusable(f"holds the link {str(name)!r}, which leads out of it")
        # The target may itself be a link: each is checked in the same way.
        if not source.resolve().is_relative_to(self._source.resolve()):
            raise _unusable(f"holds the link {str(name)!r}, which leads out of it")
        self._note(f"link {destination}", name)
        target.symlink_to(destination)

    def _file(self, source: Path, target: Path, name: Path) -> None:
        # Does not follow a link that replaced the file since the check.
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as reader:
            status = os.fstat(reader.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _unusable(f"changed while it was copied: {str(name)!r}")
            is_executable = bool(status.st_mode & stat.S_IXUSR)
            self._note("executable" if is_executable else "file", name)
            with target.open("xb") as writer:
                target.chmod(0o700 if is_executable else 0o600)
                while chunk := reader.read(_CHUNK_BYTES):
                    self._bytes += len(chunk)
                    if self._bytes > self._limits.max_bytes:
                        raise _unusable(f"is larger than {self._limits.max_bytes // 1024**2} MiB")
                    if self._stopped.is_set():
                        raise CopyStopped
                    self._digest.update(chunk)
                    writer.write(chunk)

    def _note(self, kind: str, name: Path) -> None:
        self._digest.update(f"\0{kind}\0{name}\0".encode(errors="surrogateescape"))


def single_executable(source: Path) -> str | None:
    """The name of `source` if it is an executable file."""
    return source.name if source.is_file() and os.access(source, os.X_OK) else None


def check_source(source: Path, home: Path) -> None:
    """Raises McpInstallFailure if `source` is missing, or is or contains the data directory with
    its keys."""
    if not source.exists():
        raise McpInstallFailure(
            McpInstallFailureKind.SOURCE_UNUSABLE, f"There is no file or directory {str(source)!r} on this machine."
        )
    real, own = source.resolve(), home.resolve()
    if own.is_relative_to(real) or real.is_relative_to(own):
        raise _unusable("is in Dragoman's own data directory, or around it")


def require_file(path: str) -> None:
    """Raises McpInstallFailure if the file to install from is missing."""
    if not Path(path).is_file():
        raise McpInstallFailure(McpInstallFailureKind.SOURCE_UNUSABLE, f"There is no file {path!r} on this machine.")


def _unusable(reason: str) -> McpInstallFailure:
    return McpInstallFailure(McpInstallFailureKind.SOURCE_UNUSABLE, f"The server cannot be copied: it {reason}.")
