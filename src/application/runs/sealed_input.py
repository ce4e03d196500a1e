"""Encrypts what a call waits for: the ledger has servers' notes and people's answers only in this
form."""

import json

from application.tools.ports import Box
from domain.mcp.elicitation import InputRound


def sealed(waited_for: InputRound, box: Box) -> bytes:
    """The encrypted form. Seal just before storing: keys may change."""
    return box.encrypt(json.dumps(waited_for.as_json(), separators=(",", ":")).encode())


def unsealed(stored: bytes, box: Box) -> InputRound:
    """The inverse. Raises ServiceError `secret_undecryptable` when its key is gone."""
    return InputRound.from_json(json.loads(box.decrypt(stored)))
