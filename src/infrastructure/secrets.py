"""Encryption of secrets at rest (server environments, headers, keys), and the key file in HOME."""

import base64
import binascii
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from domain.errors import ErrorKind, ServiceError

SECRET_KEY_FILE = "secret.key"

_KEY_BYTES = 32
_FERNET_KEY_LENGTH = 44
_DERIVATION = b"dragoman/secret-box/v1"
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class SecretBox:
    """Encrypts with the first of its keys, decrypts with any: put a new key first to rotate.

    A key is a Fernet key (32 bytes in url-safe base64), used as it is, or any other text, from which one is derived.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("a secret box needs a key")
        self._fernet = MultiFernet([Fernet(_fernet_key(key)) for key in keys])

    def encrypt(self, plain: bytes) -> bytes:
        """The encrypted and signed form, url-safe ASCII."""
        return self._fernet.encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """The plain bytes. Raises ServiceError `secret_undecryptable` when no key fits or the value was changed."""
        try:
            return self._fernet.decrypt(encrypted)
        except InvalidToken:
            # From None: the traceback of a failed decryption has nothing to tell.
            raise ServiceError(
                "secret_undecryptable",
                ErrorKind.INTERNAL,
                "A stored secret cannot be decrypted with the keys at hand. Check DRAGOMAN_SECRET_KEY, or secret.key in"
                " DRAGOMAN_HOME: the key that was used when the secret was stored must be among them (after a comma).",
            ) from None


def load_or_create_secret_key(home: Path) -> str:
    """The key in HOME/secret.key, made (0600, in a directory 0700) if there is none. Safe against a second process.

    Raises ServiceError `secret_key_unusable` if the file holds no key or cannot be read or written.
    """
    path = home / SECRET_KEY_FILE
    try:
        home.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _create(path)
        if path.stat().st_mode & 0o077:
            path.chmod(_PRIVATE_FILE)
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, "it cannot be read or written") from error
    if not key:
        raise _unusable(path, "it is empty; restore it, or remove it if no secret is stored yet")
    return key


def _create(path: Path) -> None:
    """Put a new key in place whole or not at all: another process must never read half of one."""
    if path.exists():
        return
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)  # unlike rename, it never replaces the key of a faster process
    finally:
        unfinished.unlink(missing_ok=True)


def _unusable(path: Path, why: str) -> ServiceError:
    return ServiceError("secret_key_unusable", ErrorKind.INTERNAL, f"The secret key file {path} cannot be used: {why}.")


def _fernet_key(key: str) -> bytes:
    if len(key) == _FERNET_KEY_LENGTH:
        with suppress(binascii.Error, ValueError):
            if len(base64.b64decode(key, altchars=b"-_", validate=True)) == _KEY_BYTES:
                return key.encode("ascii")
    derived = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=_DERIVATION).derive(key.encode())
    return base64.urlsafe_b64encode(derived)
