"""What stores need of the service that encrypts values."""

from typing import Protocol


class SecretBox(Protocol):
    """Encrypts what must not be readable in the database or its backups."""

    def encrypt(self, plain: bytes, /) -> bytes:
        """The sealed form, which `decrypt` opens."""
        ...

    def decrypt(self, sealed: bytes, /) -> bytes:
        """The inverse of `encrypt`."""
        ...
