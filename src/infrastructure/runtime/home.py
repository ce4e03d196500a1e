"""HOME, the data directory: its owner's lock, and the files through which the CLI finds the service
and its key."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from domain.errors import ErrorKind, ServiceError


class Home:
    """A data directory with mode 0700; its files have mode 0600. `database_path` is the SQLite
    file, by default in the directory."""

    def __init__(self, path: Path, *, database_path: Path | None = None) -> None:
        self.path = path
        self.database_path = database_path or path / "dragoman.db"

    @property
    def admin_key_path(self) -> Path:
        """The first key, written at the first start."""
        return self.path / "admin.key"

    @property
    def _draft_path(self) -> Path:
        return self.path / "admin.key.draft"

    @property
    def serve_path(self) -> Path:
        return self.path / "serve.json"

    @property
    def servers_path(self) -> Path:
        return self.path / "servers"

    @property
    def scripts_path(self) -> Path:
        return self.path / "scripted"

    def create(self) -> None:
        """Create the directory. Raises UNAVAILABLE `home_unusable`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as exc:
            reason = exc.strerror or "it cannot be created"
            raise ServiceError(
                "home_unusable", ErrorKind.UNAVAILABLE, f"The data directory {self.path} cannot be used: {reason}."
            ) from exc

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the locks that make this process the only owner of the directory, and of a database
        elsewhere. The locks end with the process. Raises CONFLICT `home_in_use`, UNAVAILABLE
        `home_unusable`."""
        self.create()
        with ExitStack() as locks:
            hint = "Stop it, or set DRAGOMAN_HOME to another directory."
            locks.enter_context(_locked(self.path / "lock", f"the data directory {self.path}", hint))
            if self.database_path.parent != self.path:
                hint = "Stop it, or name another file in DRAGOMAN_DATABASE_URL."
                lock = self.database_path.with_name(f"{self.database_path.name}.lock")
                locks.enter_context(_locked(lock, f"the database {self.database_path}", hint))
            yield

    def draft(self, fresh: str) -> str:
        """The existing draft of the token, otherwise `fresh`, which is stored; only the owner can
        read it."""
        with _written(self._draft_path):
            drafted = _text_of(self._draft_path)
        if drafted:
            return drafted
        self._write_private(self._draft_path, fresh + "\n")
        return fresh

    def keep(self) -> None:
        """The draft becomes the first key, in the file that the CLI reads."""
        with _written(self.admin_key_path):
            self._draft_path.replace(self.admin_key_path)

    def discard(self) -> None:
        with _written(self._draft_path):
            self._draft_path.unlink(missing_ok=True)

    def read_admin_key(self) -> str | None:
        """The first key, or None if the file is missing."""
        return _text_of(self.admin_key_path)

    @contextmanager
    def announced(self, url: str) -> Iterator[None]:
        """Publish the service's address while the context is open."""
        self._write_private(self.serve_path, json.dumps({"url": url, "pid": os.getpid()}) + "\n")
        try:
            yield
        finally:
            self.serve_path.unlink(missing_ok=True)

    def _write_private(self, path: Path, text: str) -> None:
        temporary = path.with_suffix(".new")
        with _written(path):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or "it cannot be written"
        raise ServiceError("home_unusable", ErrorKind.UNAVAILABLE, f"Cannot write {path}: {reason}.") from exc


@contextmanager
def _locked(path: Path, what: str, hint: str) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        reason = exc.strerror or "it cannot be locked"
        raise ServiceError("home_unusable", ErrorKind.UNAVAILABLE, f"Cannot use {what}: {reason}.") from exc
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            detail = f"Another process (pid {owner}) owns {what}. {hint}"
            raise ServiceError("home_in_use", ErrorKind.CONFLICT, detail) from exc
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            # A process that is being started holds a copy of the descriptor until it executes its
            # program.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
