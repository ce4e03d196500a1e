"""The secret box of a process, whose library is loaded by the first value: an idle service does without its memory."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from infrastructure.secrets.key_derivation import derived_key, fernet_key


class OpenBox(Protocol):
    """What encrypts."""

    def use(self, keys: Sequence[str], /) -> None:
        """From now on, encrypt with the first of these and decrypt with any."""
        ...

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
        self._box: OpenBox | None = None
        self._opening = threading.Lock()
        self.use(keys)

    def use(self, keys: Sequence[str]) -> None:
        """From now on, encrypt with the first of these and decrypt with any."""
        if not keys:
            raise ValueError("a secret box needs a key")
        # Whoever opens the box meanwhile must not come away with the keys of before.
        with self._opening:
            self._keys = tuple(keys)
            self._derived: dict[bytes, tuple[bytes, ...]] = {}
            if self._box is not None:
                self._box.use(keys)

    def derived(self, purpose: bytes) -> tuple[bytes, ...]:
        """32 bytes from each key, newest first, that say nothing of the key or of what another purpose gives."""
        derived = self._derived
        if purpose not in derived:
            derived[purpose] = tuple(derived_key(fernet_key(key), purpose) for key in self._keys)
        return derived[purpose]

    def encrypt(self, plain: bytes) -> bytes:
        """The encrypted and signed form, url-safe ASCII."""
        return self._opened().encrypt(plain)

    def decrypt(self, encrypted: bytes) -> bytes:
        """The plain bytes. Raises ServiceError `secret_undecryptable` when no key fits or the value was changed."""
        return self._opened().decrypt(encrypted)

    def is_current(self, encrypted: bytes) -> bool:
        """Whether a value is encrypted with the newest key."""
        return self._opened().is_current(encrypted)

    def _opened(self) -> OpenBox:
        box = self._box
        if box is None:
            with self._opening:
                box = self._box = self._box or self._load(self._keys)
        return box
