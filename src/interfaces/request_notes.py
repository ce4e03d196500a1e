"""What a request's handlers know that its log line should say. The notes travel in the ASGI scope's state."""

import re
from dataclasses import dataclass

from litestar.enums import ScopeType
from litestar.types import Scope

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal

_KEY = "dragoman_request_notes"
_ID = re.compile(r"[a-z]+_[0-9A-Za-z]{26}")
_LOGGED_PARAMETERS = {"run_id": "run_id", "thread_id": "thread_id", "workflow_run": "workflow_run_id"}


@dataclass(slots=True)
class RequestNotes:
    """Notes on one request.

    `refusal` is the code of the expected failure that the answer tells, `refused_by` its kind. `lasts_on_purpose`: a wait or a
    stream, which no duration makes slow. `is_logged`: another line already reports the failure, with the request's ids.
    """

    request_id: str
    gateway_session_id: str | None = None
    tool: str | None = None
    refusal: str | None = None
    refused_by: ErrorKind | None = None
    lasts_on_purpose: bool = False
    is_logged: bool = False

    def refused(self, error: ServiceError) -> None:
        """The answer tells of this failure."""
        self.refusal = error.code
        self.refused_by = error.kind


def put_notes(scope: Scope, notes: RequestNotes) -> None:
    """Attach the notes to a request."""
    scope["state"] = {**scope.get("state", {}), _KEY: notes}


def notes_of(scope: Scope) -> RequestNotes:
    """The notes of a request; unattached ones where requests are not logged."""
    found = scope.get("state", {}).get(_KEY)
    return found if isinstance(found, RequestNotes) else RequestNotes(request_id="")


def request_fields(scope: Scope) -> dict[str, object]:
    """What a line says of a request: its ids as far as they are known, method and path template, and what its notes say."""
    notes = notes_of(scope)
    principal = scope.get("auth")
    fields: dict[str, object] = {
        "request_id": notes.request_id,
        "method": scope["method"] if scope["type"] == ScopeType.HTTP else "",
        "path": scope.get("path_template"),
        "refusal": notes.refusal,
        "gateway_session_id": notes.gateway_session_id,
        "tool": notes.tool,
    }
    if isinstance(principal, Principal):
        fields |= {"organization_id": principal.organization_id, "key_id": principal.key_id}
    for name, value in scope.get("path_params", {}).items():
        # What does not look like an id may be anything, a secret too.
        if name in _LOGGED_PARAMETERS and _ID.fullmatch(str(value)):
            fields[_LOGGED_PARAMETERS[name]] = str(value)
    return {name: value for name, value in fields.items() if value}
