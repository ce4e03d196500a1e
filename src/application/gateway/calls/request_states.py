"""Sealed states that clients get with `input_required` and send back, valid for one session (MCP
2026-07-28, basic/utilities/mrtr)."""

import base64
import json

from application.tools.ports import Box
from domain.errors import ServiceError, invalid
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject

_PURPOSE = "gateway request state"
"""Other values that this box encrypts are rejected as states."""


class RequestStates:
    def __init__(self, *, box: Box) -> None:
        self._box = box

    def sealed(self, session: GatewaySession, state: JsonObject) -> str:
        """Valid only for this session's client."""
        told = {**state, "purpose": _PURPOSE, "session": session.id}
        return self._box.encrypt(json.dumps(told, separators=(",", ":")).encode()).decode("ascii")

    def opened(self, session: GatewaySession, state: str) -> JsonObject:
        """The inverse of `sealed`. Raises INVALID `request_state_invalid` for a state of another
        session."""
        try:
            # Decoders ignore some changes of the text; such a state is rejected.
            if base64.urlsafe_b64encode(base64.urlsafe_b64decode(state)) != state.encode():
                raise state_invalid()
            told = json.loads(self._box.decrypt(state.encode()))
        except (ServiceError, ValueError) as exc:
            raise state_invalid() from exc
        if not isinstance(told, dict) or (told.get("purpose"), told.get("session")) != (_PURPOSE, session.id):
            raise state_invalid()
        return told


def state_invalid() -> ServiceError:
    return invalid("request_state_invalid", "params.requestState is not valid for this session and request.")
