"""Schedules as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from domain.runs.webhook import Webhook
from domain.schedules.schedule import Schedule
from domain.threads.message_json import content_to_json, timestamp
from interfaces.http.agents.views import LimitsView, limits_view


class ScheduleErrorView(TypedDict):
    """Why the last trigger started no run."""

    code: str
    detail: str
    at: str


class ScheduleWebhookView(TypedDict):
    """The webhook of the runs. `receiver` is the host and port of its URL; the rest is never
    shown."""

    receiver: str
    secret: str | None
    events: list[str]


class ScheduleView(TypedDict):
    """A schedule. `next_fire_at` is null while it is paused. `last_error` is cleared when a
    trigger starts a run."""

    id: str
    name: str
    cron: str
    timezone: str
    agent_id: str
    input: list[Mapping[str, object]]
    thread_id: str | None
    multitask_strategy: str
    limits: LimitsView
    model: str | None
    tool_allowlist: list[str] | None
    metadata: Mapping[str, object]
    webhook: ScheduleWebhookView | None
    missed: str
    enabled: bool
    next_fire_at: str | None
    last_fired_at: str | None
    last_run_id: str | None
    last_error: ScheduleErrorView | None
    version: int
    created_at: str
    updated_at: str


class SchedulePage(TypedDict):
    """A page of schedules; `next_cursor` is null on the last one."""

    data: list[ScheduleView]
    next_cursor: str | None


def schedule_view(schedule: Schedule) -> ScheduleView:
    error = schedule.last_error
    return {
        "id": schedule.id,
        "name": schedule.name,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "agent_id": schedule.agent_id,
        "input": [content_to_json(part) for part in schedule.input],
        "thread_id": schedule.thread_id,
        "multitask_strategy": schedule.strategy.value,
        "limits": limits_view(schedule.limits),
        "model": schedule.model,
        "tool_allowlist": None if schedule.tool_allowlist is None else list(schedule.tool_allowlist),
        "metadata": schedule.metadata,
        "webhook": None if schedule.webhook is None else _webhook_view(schedule.webhook),
        "missed": schedule.missed.value,
        "enabled": schedule.enabled,
        "next_fire_at": None if schedule.next_fire_at is None else timestamp(schedule.next_fire_at),
        "last_fired_at": None if schedule.last_fired_at is None else timestamp(schedule.last_fired_at),
        "last_run_id": schedule.last_run_id,
        "last_error": None
        if error is None
        else {"code": error.code, "detail": error.detail, "at": timestamp(error.at)},
        "version": schedule.version,
        "created_at": timestamp(schedule.created_at),
        "updated_at": timestamp(schedule.updated_at),
    }


def _webhook_view(webhook: Webhook) -> ScheduleWebhookView:
    return {
        "receiver": webhook.receiver,
        "secret": None if webhook.secret is None else webhook.secret.name,
        "events": [event.value for event in webhook.events],
    }
