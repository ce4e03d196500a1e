"""Facts that handlers record for the log line of a request, in the state of the ASGI scope."""

import re
from dataclasses import dataclass

from litestar.enums import ScopeType
from litestar.types import Scope

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import RunId

_KEY = "dragoman_request_notes"
_ID = re.compile(r"[a-z]+_[0-9A-Za-z]{26}")
_LOGGED_PARAMETERS = {"run_id": "run_id", "thread_id": "thread_id", "workflow_run": "workflow_run_id"}


@dataclass(slots=True)
class RequestNotes:
    """- `refusal` is the code of an expected failure, `refused_by` its kind.
    - `lasts_on_purpose` marks waits and streams, which are never slow.
    - `waits_for` is the run whose end the client waits for.
    - `is_logged`: another line already reports the failure, with the request's ids.
    """

    request_id: str
    gateway_session_id: str | None = None
    tool: str | None = None
    refusal: str | None = None
    refused_by: ErrorKind | None = None
    lasts_on_purpose: bool = False
    waits_for: RunId | None = None
    is_logged: bool = False

    def refused(self, error: ServiceError) -> None:
        """Record the failure that the response reports."""
        self.refusal = error.code
        self.refused_by = error.kind


def put_notes(scope: Scope, notes: RequestNotes) -> None:
    scope["state"] = {**scope.get("state", {}), _KEY: notes}


def notes_of(scope: Scope) -> RequestNotes:
    """The notes of a request; unattached notes where requests are not logged."""
    found = scope.get("state", {}).get(_KEY)
    return found if isinstance(found, RequestNotes) else RequestNotes(request_id="")


def request_fields(scope: Scope) -> dict[str, object]:
    """Fields of a log line: known ids, method, path template, and the notes."""
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
        # Text that does not look like an id may be a secret.
        if name in _LOGGED_PARAMETERS and _ID.fullmatch(str(value)):
            fields[_LOGGED_PARAMETERS[name]] = str(value)
    return {name: value for name, value in fields.items() if value}
