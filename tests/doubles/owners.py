"""The teams that own what the in-memory tables have."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from domain.audit.event import OF_ORGANIZATION, AuditEvent
from domain.identity.organization_group import team_gone
from domain.ids import (
    AgentId,
    ApprovalId,
    GatewaySessionId,
    McpServerId,
    OrganizationId,
    RunId,
    ScheduleId,
    SourceId,
    ThreadId,
    WebhookDeliveryId,
    WorkflowId,
    WorkflowRunId,
)
from domain.teams import Teams, sees
from tests.doubles.state import InMemoryState

T = TypeVar("T")
_OWNED = ("agt_", "mcp_", "thr_", "run_", "sch_", "gws_", "src_", "whk_", "wfl_", "wfr_")


def team_of(state: InMemoryState, identifier: str | None) -> str | None:
    """The team of what has this id; None for what is not there, too."""
    return next((owner for owner in _owners(state, identifier or "") or () if owner is not None), None)


def seen(state: InMemoryState, teams: Teams, items: Iterable[T], identifier: Callable[[T], str]) -> list[T]:
    """Those that are seen with what these teams own."""
    return [item for item in items if all(sees(teams, owner) for owner in _owners(state, identifier(item)) or ())]


def is_seen_entry(state: InMemoryState, teams: Teams, entry: AuditEvent) -> bool:
    """As `AuditFilter.teams`."""
    versions = [*state.agents.values()]
    owners = [each[-1].team for each in versions] + [each.team for each in state.servers.values()]
    owners += [each.thread.team for each in state.threads.values()]
    owners += [each[-1].team for each in state.workflows.values()]
    owners += [each.run.team for each in state.workflow_runs.values()]
    if teams is None or not (any(owners) or entry.organization_id in state.had_teams):
        return True
    named = [each for each in (entry.run_id, entry.server_id, entry.resource) if each is not None]
    owned = [_owners(state, each) for each in named if each.startswith(_OWNED)]
    if not entry.resource.startswith(_OWNED) and entry.run_id is None and entry.action not in OF_ORGANIZATION:
        if not entry.action.startswith("tool."):
            return False
        session_id = entry.details.get("gateway_session_id")
        if session_id is not None:
            owned.append(_owners(state, str(session_id)))
        else:
            owned.append(_owners(state, str(entry.details.get("workflow_run_id"))))
    return all(owners is not None and all(sees(teams, owner) for owner in owners) for owners in owned)


def group_names(state: InMemoryState, organization_id: OrganizationId) -> frozenset[str]:
    """Of groups of the organization and of directories."""
    own = {each.name for each in state.organization_groups.values() if each.organization_id == organization_id}
    return frozenset(own | {each.name for each in state.groups.values() if each.organization_id == organization_id})


def require_group(
    state: InMemoryState, organization_id: OrganizationId, team: str | None, *, former: str | None = None
) -> None:
    """Raises CONFLICT `team_gone` for another team than before."""
    if team is None or team == former:
        return
    if team not in group_names(state, organization_id):
        raise team_gone(team)
    state.had_teams.add(organization_id)


def owned_by(state: InMemoryState, organization_id: OrganizationId, name: str) -> dict[str, list[str]]:
    """Names of what belongs to the group, by kind."""
    of = (organization_id, name)
    agents = [each[-1] for each in state.agents.values() if each[-1].id not in state.deleted_agents]
    workflows = state.workflows_in_use(organization_id)
    workflow_runs = [each.run for each in state.workflow_runs.values()]
    threads = [each.thread for each in state.threads.values()]
    owned: dict[str, list[str]] = {
        "agents": sorted(each.config.name for each in agents if (each.organization_id, each.team) == of),
        "MCP servers": sorted(
            each.config.slug for each in state.servers.values() if (each.organization_id, each.team) == of
        ),
        "workflows": sorted(each.definition.name for each in workflows if each.team == name),
        "threads": sorted(str(each.id) for each in threads if (each.organization_id, each.team) == of),
        "workflow runs": sorted(str(each.id) for each in workflow_runs if (each.organization_id, each.team) == of),
    }
    return {kind: names for kind, names in owned.items() if names}


def _owners(state: InMemoryState, identifier: str) -> tuple[str | None, ...] | None:
    """The teams of what has this id; None for what is not there."""
    if versions := state.agents.get(AgentId(identifier)):
        return (versions[-1].team,)
    if (server := state.servers.get(McpServerId(identifier))) is not None:
        return (server.team,)
    if (thread := state.threads.get(ThreadId(identifier))) is not None:
        return (thread.thread.team,)
    if (run := state.runs.get(RunId(identifier))) is not None:
        return (run.run.team,)
    if (schedule := state.schedules.get(ScheduleId(identifier))) is not None:
        return (team_of(state, schedule.agent_id), team_of(state, schedule.thread_id))
    if (session := state.gateway_sessions.get(GatewaySessionId(identifier))) is not None:
        return (team_of(state, session.session.thread_id),)
    if (source := state.sources.get(SourceId(identifier))) is not None:
        return (team_of(state, source.source.thread_id),)
    if (approval := state.approvals.get(ApprovalId(identifier))) is not None:
        return (team_of(state, approval.run_id or approval.gateway_session_id),)
    if (delivery := state.deliveries.get(WebhookDeliveryId(identifier))) is not None:
        return (team_of(state, delivery.delivery.run_id),)
    if versions_of_workflow := state.workflows.get(WorkflowId(identifier)):
        return (versions_of_workflow[-1].team,)
    if (workflow_run := state.workflow_runs.get(WorkflowRunId(identifier))) is not None:
        return (workflow_run.run.team,)
    return None
