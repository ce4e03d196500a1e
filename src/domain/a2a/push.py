"""Push notification configs: where the states of a task are sent."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from domain.errors import ErrorKind, ServiceError, Violation
from domain.ids import OrganizationId, RunId
from domain.json_value import JsonObject
from domain.runs.webhook import Webhook

MAX_CONFIGS = 10
"""Of one task."""
TOKEN_HEADER = "X-A2A-Notification-Token"

_SCHEME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
"""RFC 9110, section 11.1."""
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""A header's value that nothing else can follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """A receiver. `token` and `credentials` are sent to it and never shown; empty ones are not
    sent."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)

    @property
    def webhook(self) -> Webhook:
        """The receiver as a webhook."""
        return Webhook(url=self.url)

    @property
    def headers(self) -> dict[str, str]:
        """What the receiver knows the sender by."""
        sent = {TOKEN_HEADER: self.token} if self.token else {}
        return {**sent, "Authorization": f"{self.scheme} {self.credentials}"} if self.credentials else sent

    def violations(self) -> list[Violation]:
        """Invalid fields; the egress guard checks the address."""
        given = (("token", self.token), ("authentication.credentials", self.credentials))
        found = [
            Violation(path=path, message="must be printable ASCII without spaces at its ends")
            for path, value in given
            if value and _VALUE.fullmatch(value) is None
        ]
        if (self.scheme or self.credentials) and _SCHEME.fullmatch(self.scheme) is None:
            found.append(Violation(path="authentication.scheme", message="must name an HTTP authentication scheme"))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PushConfig:
    """A receiver of a task; `id` is unique within the task."""

    id: str
    organization_id: OrganizationId
    run_id: RunId
    target: PushTarget
    created_at: datetime

    def as_json(self) -> JsonObject:
        """`{id, taskId, url, authentication?}`."""
        shown: JsonObject = {"id": self.id, "taskId": self.run_id, "url": self.target.url}
        return {**shown, "authentication": {"scheme": self.target.scheme}} if self.target.scheme else shown


def too_many_configs() -> ServiceError:
    return ServiceError(
        "push_configs_limit", ErrorKind.LIMIT, f"A task has {MAX_CONFIGS} push notification configs at most."
    )
