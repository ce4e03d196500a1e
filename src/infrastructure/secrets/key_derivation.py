"""Key derivation with the standard library: every start derives keys, and the encryption library
takes megabytes."""

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
    """32 bytes that reveal nothing about `key` or about other purposes: HKDF with SHA-256, without
    salt, with one block of output (RFC 5869, 2.2 and 2.3)."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")


def fernet_key(key: str) -> bytes:
    """A Fernet key (32 bytes in url-safe base64) unchanged; for any other text, a derived key."""
    if len(key) == _FERNET_KEY_LENGTH:
        with suppress(binascii.Error, ValueError):
            if len(base64.b64decode(key, altchars=b"-_", validate=True)) == KEY_BYTES:
                return key.encode("ascii")
    return base64.urlsafe_b64encode(derived_key(key.encode(), _DERIVATION))


def new_fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
