"""The encryption that stores need."""

from typing import Protocol

_KEY_NAME = b"dragoman/key-name"


class SecretBox(Protocol):
    """Encrypts values that must not be readable in the database or its backups."""

    def encrypt(self, plain: bytes, /) -> bytes: ...

    def decrypt(self, sealed: bytes, /) -> bytes: ...


class KeyedBox(SecretBox, Protocol):
    """A box that can name its newest key, so that SQL finds values under older ones."""

    def derived(self, purpose: bytes, /) -> tuple[bytes, ...]:
        """32 bytes from each key, newest first, that reveal nothing about the key."""


def key_name(box: KeyedBox) -> str:
    """Name of the newest key; reveals nothing about it."""
    return box.derived(_KEY_NAME)[0][:8].hex()
