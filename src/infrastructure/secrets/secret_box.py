"""Encryption of secrets at rest (named secrets, server environments, headers, grants).

Keys: `secret_keys.py`; the service opens it through `lazy_box.py`.
"""

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from domain.errors import ErrorKind, ServiceError
from infrastructure.secrets.key_derivation import derived_key, fernet_key


class SecretBox:
    """Encrypts with the first of its keys, decrypts with any. To rotate, put a new key first.

    A Fernet key (32 bytes in url-safe base64) is used unchanged; from any other text a key is
    derived.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.use(keys)

    def use(self, keys: Sequence[str]) -> None:
        """Encrypt with the first of these keys and decrypt with any."""
        if not keys:
            raise ValueError("a secret box needs a key")
        self._keys = tuple(fernet_key(key) for key in keys)
        newest, *older = [Fernet(key) for key in self._keys]
        self._newest = newest
        self._fernet = MultiFernet([newest, *older])

    def encrypt(self, plain: bytes) -> bytes:
        return self._fernet.encrypt(plain)

    def is_current(self, encrypted: bytes) -> bool:
        """Whether a value is encrypted with the newest key."""
        try:
            self._newest.decrypt(encrypted)
        except InvalidToken:
            return False
        return True

    def derived(self, purpose: bytes) -> tuple[bytes, ...]:
        """32 bytes from each key, newest first, that reveal nothing about the key or other
        purposes."""
        return tuple(derived_key(key, purpose) for key in self._keys)

    def decrypt(self, encrypted: bytes) -> bytes:
        """The plain bytes. Raises ServiceError `secret_undecryptable` if no key matches or the
        value was changed."""
        try:
            return self._fernet.decrypt(encrypted)
        except InvalidToken:
            # From None: the traceback of a failed decryption says nothing useful.
            raise ServiceError(
                "secret_undecryptable",
                ErrorKind.INTERNAL,
                "A stored secret cannot be decrypted with the keys at hand. Check DRAGOMAN_SECRET_KEY, or secret.key in"
                " DRAGOMAN_HOME: the key that was used when the secret was stored must be among them (after a comma).",
            ) from None
