"""Schedules as JSON."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from domain.runs.events import RunEventType
from domain.runs.lane import Lane
from domain.runs.run import MultitaskStrategy
from domain.runs.webhook import Webhook
from domain.schedules.schedule import MissedFires, Schedule
from domain.threads.message_json import content_to_json, timestamp
from interfaces.http.agents.model_settings_views import ModelSettingsView, model_settings_view
from interfaces.http.agents.views import LimitsView, limits_view
from interfaces.http.threads.content_views import InputPartView
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp, UpdatedAt, Version


class ScheduleErrorView(TypedDict):
    """Why the last trigger started no run."""

    code: Annotated[str, "Code of the error."]
    detail: Annotated[str, "The error as a sentence."]
    at: Annotated[Timestamp, "Time of the trigger."]


class ScheduleWebhookView(TypedDict):
    """The webhook of the runs. `receiver` is the host and port of its URL; the rest is never
    shown."""

    receiver: Annotated[str, "Host and port of its URL; the rest is never shown."]
    secret: Annotated[str | None, "Name of the signing secret; null: the organization's key."]
    events: Annotated[list[RunEventType], "Types of the events that are sent."]


class ScheduleView(TypedDict):
    """A schedule. `next_fire_at` is null while it is paused. `last_error` is cleared when a
    trigger starts a run."""

    id: Annotated[str, "Id of the schedule."]
    name: Annotated[str, "Unique in the organization."]
    cron: Annotated[str, "Five fields: minute, hour, day of month, month, day of week."]
    timezone: Annotated[str, "The IANA time zone of the expression."]
    agent_id: Annotated[str, "Id of the agent."]
    input: Annotated[list[InputPartView], "Input of every run."]
    thread_id: Annotated[str | None, "The thread of every run. By default each run gets a new thread."]
    multitask_strategy: Annotated[MultitaskStrategy, "What happens to an unfinished run of the thread."]
    lane: Annotated[Lane | None, "The lane of its runs; null: the agent's."]
    limits: Annotated[LimitsView, "Limits of the runs; they can only narrow the agent's."]
    model_settings: Annotated[ModelSettingsView, "Replace the agent's one by one."]
    output_schema: Annotated[
        Mapping[str, object] | None, "JSON Schema of the answers of its runs, of type object; null: the agent's."
    ]
    model: Annotated[str | None, "The agent's, one of its fallbacks, or one of the organization's; null: the agent's."]
    tool_allowlist: Annotated[list[str] | None, "As for a run: it can only narrow the agent's."]
    metadata: Annotated[Mapping[str, object], "Metadata of every run; `schedule` is added."]
    webhook: Annotated[ScheduleWebhookView | None, "Webhook for the results of every run."]
    missed: Annotated[MissedFires, "Handling of triggers that were missed while no worker executed runs."]
    enabled: Annotated[bool, "`false` pauses the schedule."]
    person_id: Annotated[str | None, "The person as whom its runs act, with their accounts; null: as no person."]
    next_fire_at: Annotated[Timestamp | None, "Time of the next run; null while it is paused."]
    last_fired_at: Annotated[Timestamp | None, "Time of the last trigger; null if there was none."]
    last_run_id: Annotated[str | None, "The last run that it started."]
    last_error: Annotated[ScheduleErrorView | None, "Why the last trigger started no run; null if it did."]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class SchedulePage(TypedDict):
    """A page of schedules; `next_cursor` is null on the last one."""

    data: Items[ScheduleView]
    next_cursor: NextCursor


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
        "multitask_strategy": schedule.strategy,
        "lane": schedule.lane,
        "limits": limits_view(schedule.limits),
        "model_settings": model_settings_view(schedule.model_settings),
        "output_schema": schedule.output_schema,
        "model": schedule.model,
        "tool_allowlist": None if schedule.tool_allowlist is None else list(schedule.tool_allowlist),
        "metadata": schedule.metadata,
        "webhook": None if schedule.webhook is None else _webhook_view(schedule.webhook),
        "missed": schedule.missed,
        "enabled": schedule.enabled,
        "person_id": schedule.person_id,
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
        "events": list(webhook.events),
    }
