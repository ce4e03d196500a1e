"""The secret box of a process, whose library is loaded by the first value: an idle service does without its memory."""

from collections.abc import Callable, Sequence
from typing import Protocol

from application.system.lazy import Lazy
from infrastructure.secrets.key_derivation import derived_key, fernet_key


class OpenBox(Protocol):
    """A box whose library is loaded."""

    def encrypt(self, plain: bytes, /) -> bytes:
        """With the newest key."""
        ...

    def decrypt(self, encrypted: bytes, /) -> bytes:
        """With the key that fits. Raises INTERNAL `secret_undecryptable`."""
        ...

    def is_current(self, encrypted: bytes, /) -> bool:
        """Whether a value is encrypted with the newest key."""
        ...


class LazySecretBox:
    """A secret box that `load` makes of its keys on first use; what is derived from the keys needs none."""

    def __init__(self, keys: Sequence[str], *, load: Callable[[Sequence[str]], OpenBox]) -> None:
        self._load = load
        self.use(keys)

    def use(self, keys: Sequence[str]) -> None:
        """From now on, encrypt with the first of these and decrypt with any."""
        if not keys:
            raise ValueError("a secret box needs a key")
        self._keys = tuple(keys)
        self._derived: dict[bytes, tuple[bytes, ...]] = {}
        self._box = Lazy(lambda: self._load(keys))  # a box opened meanwhile with the keys of before is not used again

    def derived(self, purpose: bytes) -> tuple[bytes, ...]:
        """32 bytes from each key, newest first, that say nothing of the key or of what another purpose gives."""
        derived = self._derived
        if purpose not in derived:
            derived[purpose] = tuple(derived_key(fernet_key(key), purpose) for key in self._keys)
        return derived[purpose]

    def encrypt(self, plain: bytes) -> bytes:
        """The encrypted and signed form, url-safe ASCII."""
        return self._box.get().encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """The plain bytes. Raises ServiceError `secret_undecryptable` when no key fits or the value was changed."""
        return self._box.get().decrypt(encrypted)

    def is_current(self, encrypted: bytes) -> bool:
        """Whether a value is encrypted with the newest key."""
        return self._box.get().is_current(encrypted)
