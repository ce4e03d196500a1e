"""The secret box of a process. Its library is loaded with the first value, to save memory in an
idle service."""

from collections.abc import Callable, Sequence
from typing import Protocol

from application.system.lazy import Lazy
from infrastructure.secrets.key_derivation import derived_key, fernet_key


class OpenBox(Protocol):
    """A secret box with its library loaded."""

    def encrypt(self, plain: bytes, /) -> bytes:
        """Encrypt with the newest key."""

    def decrypt(self, encrypted: bytes, /) -> bytes:
        """Decrypt with the matching key. Raises INTERNAL `secret_undecryptable`."""

    def is_current(self, encrypted: bytes, /) -> bool:
        """Whether a value is encrypted with the newest key."""


class LazySecretBox:
    """A secret box that `load` creates at first use. Derived keys do not need it."""

    def __init__(self, keys: Sequence[str], *, load: Callable[[Sequence[str]], OpenBox]) -> None:
        self._load = load
        self.use(keys)

    def use(self, keys: Sequence[str]) -> None:
        """Encrypt with the first of these keys and decrypt with any."""
        if not keys:
            raise ValueError("a secret box needs a key")
        self._keys = tuple(keys)
        self._derived: dict[bytes, tuple[bytes, ...]] = {}
        self._box = Lazy(lambda: self._load(keys))  # discards a box with the old keys

    def derived(self, purpose: bytes) -> tuple[bytes, ...]:
        """32 bytes from each key, newest first, that reveal nothing about the key or other
        purposes."""
        derived = self._derived
        if purpose not in derived:
            derived[purpose] = tuple(derived_key(fernet_key(key), purpose) for key in self._keys)
        return derived[purpose]

    def encrypt(self, plain: bytes) -> bytes:
        """The encrypted and signed form, url-safe ASCII."""
        return self._box.get().encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """The plain bytes. Raises ServiceError `secret_undecryptable` if no key matches or the
        value was changed."""
        return self._box.get().decrypt(encrypted)

    def is_current(self, encrypted: bytes) -> bool:
        """Whether a value is encrypted with the newest key."""
        return self._box.get().is_current(encrypted)
