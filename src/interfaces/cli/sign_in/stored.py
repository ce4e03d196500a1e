"""Stored sign-ins: one private file per service in the configuration directory, and its lock
between processes."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from interfaces.cli.failures import CommandFailure

_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSignIn:
    """A person's tokens for one service. `expires_at` is that of the ID token, in seconds since
    1970."""

    service: str
    issuer: str
    client_id: str
    id_token: str = field(repr=False)
    expires_at: float
    refresh_token: str | None = field(default=None, repr=False)


class StoredSignIns:
    """Rules:
    - Files have the mode 0600, their directory 0700, and a file is replaced whole.
    - Who renews tokens holds the lock of the service's file: a refresh token is used once.
    """

    def __init__(self, config_dir: Path) -> None:
        self._directory = config_dir / "sign-ins"

    def of(self, service: str) -> StoredSignIn | None:
        """The sign-in to the service at this address; None if there is none. Raises
        CommandFailure."""
        path = self._path(service)
        try:
            return msgspec.json.decode(path.read_bytes(), type=StoredSignIn)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise CommandFailure(f"{path} cannot be read ({exc.strerror}).") from exc
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise CommandFailure(f"{path} is damaged. Sign in again: `dragoman login`.") from exc

    def store(self, sign_in: StoredSignIn) -> None:
        """Raises CommandFailure if the file cannot be written."""
        path = self._path(sign_in.service)
        new = path.with_suffix(".new")
        try:
            self._make_directory()
            # A file that is there already keeps its mode when it is opened.
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(sign_in))
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as exc:
            raise CommandFailure(f"{path} cannot be written ({exc.strerror}).") from exc

    def forget(self, service: str) -> None:
        """Delete the sign-in."""
        self._path(service).unlink(missing_ok=True)

    @asynccontextmanager
    async def locked(self, service: str) -> AsyncIterator[None]:
        """Hold the lock of the service's file, which other processes wait for. Raises
        CommandFailure."""
        path = self._path(service).with_suffix(".lock")
        try:
            self._make_directory()
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
        except OSError as exc:
            raise CommandFailure(f"{path} cannot be locked ({exc.strerror}).") from exc
        try:
            await asyncio.to_thread(fcntl.flock, descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make_directory(self) -> None:
        self._directory.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        self._directory.chmod(_PRIVATE_DIRECTORY)

    def _path(self, service: str) -> Path:
        name = hashlib.sha256(service.rstrip("/").encode()).hexdigest()[:32]
        return self._directory / f"{name}.json"
