"""Builders of schedules and of their fires."""

from datetime import datetime

from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AgentId, OrganizationId, ScheduleId, ThreadId
from domain.json_value import JsonObject
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy
from domain.runs.webhook import Webhook
from domain.schedules.firing import Firing
from domain.schedules.schedule import MissedFires, Schedule
from domain.threads.message import TextContent, UserContent
from tests.builders import AGENT, ORG, START, an_audit_event, numbered


def a_schedule_id(number: int) -> ScheduleId:
    return ScheduleId(numbered("sch", number))


SCHEDULE = a_schedule_id(1)


def a_schedule(
    id: ScheduleId = SCHEDULE,
    *,
    organization_id: OrganizationId = ORG,
    name: str = "nightly",
    cron: str = "0 3 * * *",
    timezone: str = "UTC",
    agent_id: AgentId = AGENT,
    input: tuple[UserContent, ...] = (TextContent(text="What is new?"),),
    thread_id: ThreadId | None = None,
    strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
    limits: LimitSettings | None = None,
    model: str | None = None,
    tool_allowlist: tuple[str, ...] | None = None,
    metadata: JsonObject | None = None,
    webhook: Webhook | None = None,
    missed: MissedFires = MissedFires.RUN_ONCE,
    enabled: bool = True,
    next_fire_at: datetime | None = START,
    version: int = 1,
    created_at: datetime = START,
) -> Schedule:
    """One that is due at START."""
    return Schedule(
        id=id,
        organization_id=organization_id,
        name=name,
        cron=cron,
        timezone=timezone,
        agent_id=agent_id,
        input=input,
        thread_id=thread_id,
        strategy=strategy,
        limits=limits or LimitSettings(),
        model=model,
        tool_allowlist=tool_allowlist,
        metadata=metadata or {},
        webhook=webhook,
        missed=missed,
        enabled=enabled,
        next_fire_at=next_fire_at if enabled else None,
        version=version,
        created_at=created_at,
        updated_at=created_at,
    )


def a_firing(of: Schedule, next_fire_at: datetime | None) -> Firing:
    """The fire that the schedule is due for."""
    assert of.next_fire_at is not None
    return Firing(schedule_id=of.id, version=of.version, due_at=of.next_fire_at, next_fire_at=next_fire_at)


def made(number: int = 1, action: AuditAction = AuditAction.SCHEDULE_CREATED) -> AuditEvent:
    """What making (or else) a schedule leaves in the trail."""
    return an_audit_event(number, action=action, resource=a_schedule_id(number))
