"""`webhook` in bodies that start runs: a URL, or an object."""

from typing import Annotated, ClassVar

from pydantic import Discriminator, Field, Tag

from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.runs.webhook import WEBHOOK_EVENTS, Webhook
from domain.secrets.secret import SecretRef
from interfaces.http.bodies import Body
from interfaces.http.secrets.references import SecretReference

MAX_URL = 8_192

_Url = Annotated[str, Field(max_length=MAX_URL, description="http or https, without credentials. It is never shown.")]
_Events = Annotated[tuple[Annotated[RunEventType, Field(strict=False)], ...], Field(strict=False, max_length=50)]


class WebhookBody(Body):
    """A webhook for the results of a run. `secret` names the signing secret that replaces the
    organization's key. `events` are the ends of a run and `run.requires_action`, unless fewer
    are named."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"url": "https://example.com/hooks/dragoman", "events": ["run.completed", "run.failed"]},
    )

    url: _Url
    secret: SecretReference | None = Field(
        default=None, description="The signing secret. Default: the organization's key."
    )
    events: _Events = Field(default=WEBHOOK_EVENTS, description="Types of the events that are sent.")


def _form(given: object) -> str:
    return "url" if isinstance(given, str) else "object"


WebhookField = Annotated[
    Annotated[_Url, Tag("url")] | Annotated[WebhookBody, Tag("object")],
    # Reports faults once, for the matching form.
    Discriminator(_form),
]
"""`"https://…"`, or `{url, secret, events}`."""


def webhook_of(given: str | WebhookBody) -> Webhook:
    """The webhook, not yet validated."""
    if isinstance(given, str):
        return Webhook(url=given)
    return Webhook(
        url=given.url,
        secret=None if given.secret is None else SecretRef(given.secret.secret),
        events=tuple(dict.fromkeys(given.events)),
    )
