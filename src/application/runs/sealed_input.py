"""What a call waits for, encrypted: servers' notes and people's answers stand in the ledger only in this form."""

import json

from application.tools.ports import Box
from domain.mcp.elicitation import InputRound


def sealed(waited_for: InputRound, box: Box) -> bytes:
    """The encrypted form. Seal at the moment of handing it to a store: keys may change between."""
    return box.encrypt(json.dumps(waited_for.as_json(), separators=(",", ":")).encode())


def unsealed(stored: bytes, box: Box) -> InputRound:
    """The inverse. Raises ServiceError `secret_undecryptable` when its key is gone."""
    return InputRound.from_json(json.loads(box.decrypt(stored)))
