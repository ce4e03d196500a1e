"""The encryption that stores need."""

from typing import Protocol


class SecretBox(Protocol):
    """Encrypts values that must not be readable in the database or its backups."""

    def encrypt(self, plain: bytes, /) -> bytes: ...

    def decrypt(self, sealed: bytes, /) -> bytes: ...
