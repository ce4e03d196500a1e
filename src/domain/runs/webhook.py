"""Webhooks: addresses that receive the events of runs."""

import re
from dataclasses import dataclass, field
from typing import cast

from domain.errors import Violation
from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.secrets.secret import SecretRef, violations_of

WEBHOOK_EVENTS = (
    RunEventType.RUN_COMPLETED,
    RunEventType.RUN_FAILED,
    RunEventType.RUN_INCOMPLETE,
    RunEventType.RUN_CANCELLED,
    RunEventType.RUN_HALTED,
    RunEventType.RUN_REQUIRES_ACTION,
)
"""All events that can be delivered; the default of a webhook."""

_PORTS = {"http": "80", "https": "443"}
_AUTHORITY = re.compile(r"(https?)://(?:[^/?#@]*@)?(\[[^\]/]*\]|[^:/?#]*)(?::(\d+))?", re.IGNORECASE)
"""RFC 3986, section 3.2, for a URL that the egress guard has checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookNote:
    """A webhook without its URL. Runs store this; the URL is stored encrypted."""

    receiver: str
    secret: SecretRef | None = None
    events: tuple[RunEventType, ...] = WEBHOOK_EVENTS

    def at(self, url: str) -> "Webhook":
        """The webhook with its URL."""
        return Webhook(url=url, secret=self.secret, events=self.events)

    def to_json(self) -> JsonObject:
        """The stored form: `{receiver, secret, events}`."""
        return {
            "receiver": self.receiver,
            "secret": None if self.secret is None else self.secret.name,
            "events": [event.value for event in self.events],
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "WebhookNote":
        secret = cast("str | None", data["secret"])
        return cls(
            receiver=cast(str, data["receiver"]),
            secret=None if secret is None else SecretRef(secret),
            events=tuple(RunEventType(event) for event in cast("list[str]", data["events"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """`url` may contain a secret (many receivers put a token into the path), so it is stored
    encrypted and never shown. `secret` names a signing secret instead of the organization's key."""

    url: str = field(repr=False)
    secret: SecretRef | None = None
    events: tuple[RunEventType, ...] = WEBHOOK_EVENTS

    @property
    def receiver(self) -> str:
        """Host and port, which may be shown."""
        return _receiver_of(self.url)

    @property
    def has_address(self) -> bool:
        """Whether the URL has a host. The egress guard checks more."""
        return _AUTHORITY.match(self.url) is not None

    @property
    def note(self) -> WebhookNote:
        return WebhookNote(receiver=self.receiver, secret=self.secret, events=self.events)

    def violations(self, path: str = "webhook") -> list[Violation]:
        """Invalid fields. The egress guard checks the address."""
        found = [] if self.secret is None else violations_of(path, self.secret)
        if not self.events:
            found.append(Violation(path=f"{path}.events", message="must not be empty"))
        found += [
            Violation(path=f"{path}.events.{index}", message=f"must be one of {', '.join(WEBHOOK_EVENTS)}")
            for index, event in enumerate(self.events)
            if event not in WEBHOOK_EVENTS
        ]
        return found


def _receiver_of(url: str) -> str:
    found = _AUTHORITY.match(url.strip())
    if found is None:
        return "?"
    scheme, host, port = found.groups()
    return f"{host.lower()}:{port or _PORTS[scheme.lower()]}"
