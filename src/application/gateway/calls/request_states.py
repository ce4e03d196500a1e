"""What a client is given with `input_required`, and brings back: sealed, so that it is of this service, and of one session (MCP
2026-07-28, basic/utilities/mrtr)."""

import base64
import json

from application.tools.ports import Box
from domain.errors import ServiceError, invalid
from domain.gateway.session import GatewaySession
from domain.json_value import JsonObject

_PURPOSE = "gateway request state"
"""What else this box encrypts is not taken for a state."""


class RequestStates:
    """Seals states, and opens them."""

    def __init__(self, *, box: Box) -> None:
        self._box = box

    def sealed(self, session: GatewaySession, state: JsonObject) -> str:
        """For the session's client alone."""
        told = {**state, "purpose": _PURPOSE, "session": session.id}
        return self._box.encrypt(json.dumps(told, separators=(",", ":")).encode()).decode("ascii")

    def opened(self, session: GatewaySession, state: str) -> JsonObject:
        """The inverse of `sealed`. Raises INVALID `request_state_invalid` for what is not of this session."""
        try:
            # What decoders overlook is not what was given either.
            if base64.urlsafe_b64encode(base64.urlsafe_b64decode(state)) != state.encode():
                raise state_invalid()
            told = json.loads(self._box.decrypt(state.encode()))
        except (ServiceError, ValueError) as exc:
            raise state_invalid() from exc
        if not isinstance(told, dict) or (told.get("purpose"), told.get("session")) != (_PURPOSE, session.id):
            raise state_invalid()
        return told


def state_invalid() -> ServiceError:
    """The state is none, or not of what is asked for now."""
    return invalid("request_state_invalid", "params.requestState is not one that this session was given for this.")
