"""Receivers of push configs, whose fields are secrets: one encrypted column."""

import msgspec

from domain.a2a.push import PushTarget
from infrastructure.persistence.secrets.box import SecretBox

_decoder = msgspec.json.Decoder(PushTarget)


def sealed_target(target: PushTarget, box: SecretBox) -> bytes:
    return box.encrypt(msgspec.json.encode(target))


def target_of(sealed: bytes, box: SecretBox) -> PushTarget:
    """Raises INTERNAL `secret_undecryptable`, and ValueError for an invalid value."""
    return _decoder.decode(box.decrypt(sealed))
