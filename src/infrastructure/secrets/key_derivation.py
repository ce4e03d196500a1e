"""Keys from keys, with the standard library alone: a start derives some, and the library that encrypts takes megabytes."""

import base64
import binascii
import hashlib
import hmac
import secrets
from contextlib import suppress

KEY_BYTES = 32
_FERNET_KEY_LENGTH = 44
_DERIVATION = b"dragoman/secret-box/v1"


def derived_key(key: bytes, purpose: bytes) -> bytes:
    """32 bytes that say nothing of `key` or of what another purpose gives: HKDF with SHA-256 and without salt, whose output is
    one block (RFC 5869, 2.2 and 2.3)."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")


def fernet_key(key: str) -> bytes:
    """A Fernet key (32 bytes in url-safe base64) as it is; from any other text, one that is derived."""
    if len(key) == _FERNET_KEY_LENGTH:
        with suppress(binascii.Error, ValueError):
            if len(base64.b64decode(key, altchars=b"-_", validate=True)) == KEY_BYTES:
                return key.encode("ascii")
    return base64.urlsafe_b64encode(derived_key(key.encode(), _DERIVATION))


def new_fernet_key() -> str:
    """A key that nobody has."""
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
