"""The webhook deliveries of a run's step: one per event that the webhook subscribes to, stored in
the step's transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.ids import WebhookDeliveryId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import NewEvent
from domain.runs.run import Run
from domain.runs.run_json import run_to_json
from domain.threads.attachments import without_file_bytes
from domain.threads.message_json import content_to_json, timestamp
from domain.webhooks.delivery import WebhookDelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A new delivery and its body, which is the same for every attempt."""

    delivery: WebhookDelivery
    body: str = field(repr=False)


def announced(run: Run, events: Sequence[NewEvent], *, last_seq: int) -> tuple[Announcement, ...]:
    """The deliveries for the events of a step. The last event has the number `last_seq`; `run` is
    the state after the step.

    A run without a webhook costs one comparison.
    """
    webhook = run.webhook
    if webhook is None:
        return ()
    first = last_seq - len(events) + 1
    return tuple(
        Announcement(
            delivery=WebhookDelivery(
                id=WebhookDeliveryId(derived_id("whk", run.id, seq)),
                organization_id=run.organization_id,
                run_id=run.id,
                event=event.type,
                receiver=webhook.receiver,
                created_at=event.at,
                next_attempt_at=event.at,
            ),
            body=_body(run, event),
        )
        for seq, event in enumerate(events, first)
        if event.type in webhook.events
    )


def _body(run: Run, event: NewEvent) -> str:
    document: JsonObject = {
        "type": event.type.value,
        "timestamp": timestamp(event.at),
        "data": {**run_to_json(run), "input": _input(run)},
    }
    return json.dumps(document, separators=(",", ":"))


def _input(run: Run) -> list[JsonValue]:
    """The input without the bytes of images and files, which the sender already has."""
    parts = map(without_file_bytes, map(content_to_json, run.input))
    return [{name: value for name, value in part.items() if name != "data"} for part in parts]
