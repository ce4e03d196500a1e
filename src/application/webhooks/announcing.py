"""The webhook deliveries of a run's step: one per event that the webhook subscribes to, stored in
the step's transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from domain.a2a.push import PushConfig
from domain.a2a.tasks import task_json
from domain.ids import WebhookDeliveryId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import Run
from domain.runs.run_json import run_to_json
from domain.runs.webhook import WEBHOOK_EVENTS
from domain.threads.attachments import without_file_bytes
from domain.threads.message_json import content_to_json, timestamp
from domain.webhooks.delivery import WebhookDelivery, WebhookEvent


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
                event=WebhookEvent(event.type.value),
                receiver=webhook.receiver,
                created_at=event.at,
                next_attempt_at=event.at,
            ),
            body=_body(run, event),
        )
        for seq, event in enumerate(events, first)
        if event.type in webhook.events
    )


def pushed(
    run: Run, events: Sequence[NewEvent], *, last_seq: int, configs: Sequence[tuple[str, str]]
) -> tuple[Announcement, ...]:
    """The deliveries of an A2A task's push configs, each an `(id, receiver)`: the task as it is,
    where it waits or has ended. The last event has the number `last_seq`; `run` is the state after
    the step."""
    found = [
        (seq, event) for seq, event in enumerate(events, last_seq - len(events) + 1) if event.type in WEBHOOK_EVENTS
    ]
    if not (found and configs):
        return ()
    body = json.dumps({"task": task_json(replace(run, last_seq=last_seq))}, separators=(",", ":"))
    return tuple(
        Announcement(
            delivery=WebhookDelivery(
                id=WebhookDeliveryId(derived_id("whk", run.id, seq, config_id)),
                organization_id=run.organization_id,
                run_id=run.id,
                event=WebhookEvent(event.type.value),
                receiver=receiver,
                created_at=event.at,
                next_attempt_at=event.at,
                push_config_id=config_id,
            ),
            body=body,
        )
        for seq, event in found
        for config_id, receiver in configs
    )


def state_pushed(run: Run, config: PushConfig) -> tuple[Announcement, ...]:
    """The delivery for a config that is stored when its task waits or has ended already. Its id is
    another than that of the config which this one replaces, so that a late attempt for that one
    settles nothing here."""
    event_type = f"run.{run.status.value}"
    if event_type not in {event.value for event in WEBHOOK_EVENTS}:
        return ()
    event = NewEvent(type=RunEventType(event_type), at=config.created_at, data={})
    [made] = pushed(run, [event], last_seq=run.last_seq, configs=[(config.id, config.target.webhook.receiver)])
    own = WebhookDeliveryId(derived_id("whk", made.delivery.id, timestamp(config.created_at)))
    return (replace(made, delivery=replace(made.delivery, id=own)),)


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
