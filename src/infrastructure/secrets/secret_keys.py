"""The keys of the secret box: the operator's (DRAGOMAN_SECRET_KEY), or those in HOME/secret.key,
and their rotation.

The file holds one key, or during a rotation the new and the previous key, one per line. It is
replaced atomically before its keys are used, so it always holds all keys that stored values need.
"""

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from domain.errors import ErrorKind, ServiceError
from infrastructure.secrets.key_derivation import new_fernet_key

SECRET_KEY_FILE = "secret.key"

_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class KeyedBox(Protocol):
    """Encrypts with keys."""

    def use(self, keys: Sequence[str], /) -> None:
        """Encrypt with the first of these keys and decrypt with any."""


class GivenKeyRing:
    """`KeyRing` over the operator's keys, which are fixed at the start."""

    def begin_rotation(self) -> None:
        """The newest key is the first one given."""

    def finish_rotation(self) -> None:
        """The operator may remove the older keys now."""


class HomeKeyRing:
    """`KeyRing` over HOME/secret.key, for the process that owns HOME."""

    def __init__(self, *, home: Path, box: KeyedBox) -> None:
        self._home = home
        self._box = box

    def begin_rotation(self) -> None:
        """Add a new key before the current one, unless that was done already."""
        keys = load_or_create_secret_keys(self._home)
        if len(keys) == 1:
            keys = (new_fernet_key(), *keys)
            _replace(self._home / SECRET_KEY_FILE, keys)
        self._box.use(keys)

    def finish_rotation(self) -> None:
        """Remove all keys except the newest."""
        newest = load_or_create_secret_keys(self._home)[:1]
        _replace(self._home / SECRET_KEY_FILE, newest)
        self._box.use(newest)


def load_or_create_secret_keys(home: Path) -> tuple[str, ...]:
    """The keys in HOME/secret.key, newest first. The file is created if missing (0600, in a
    directory 0700). Safe with concurrent processes.

    Raises ServiceError `secret_key_unusable` if the file holds no key or cannot be read or written.
    """
    path = home / SECRET_KEY_FILE
    try:
        home.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _create(path)
        if path.stat().st_mode & 0o077:
            path.chmod(_PRIVATE_FILE)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, "it cannot be read or written") from error
    keys = tuple(line.strip() for line in lines if line.strip())
    if not keys:
        raise _unusable(path, "it is empty; restore it, or remove it if no secret is stored yet")
    return keys


def _create(path: Path) -> None:
    """Create the file atomically: another process must never read a part of it."""
    if path.exists():
        return
    unfinished = _written_beside(path, (new_fernet_key(),))
    try:
        os.link(unfinished, path)  # unlike rename, it never replaces the key of a faster process
    finally:
        unfinished.unlink(missing_ok=True)


def _replace(path: Path, keys: tuple[str, ...]) -> None:
    """Replace the keys atomically. They are on disk when this returns, before anything is encrypted
    with them."""
    try:
        unfinished = _written_beside(path, keys)
        try:
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise _unusable(path, "it cannot be replaced") from error


def _written_beside(path: Path, keys: tuple[str, ...]) -> Path:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp uses 0600
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("".join(f"{key}\n" for key in keys))
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished


def _unusable(path: Path, why: str) -> ServiceError:
    return ServiceError("secret_key_unusable", ErrorKind.INTERNAL, f"The secret key file {path} cannot be used: {why}.")
