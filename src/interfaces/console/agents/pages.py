"""Data of the agents' pages: the list, one agent with its tools and history, and the form."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from application.agents.queries import GetAgent, ListAgents, ListAgentVersions
from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from application.identity.queries import GetOrganization, ListTeams
from application.mcp.queries import ListMcpServers
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import MAX_PAGE_SIZE, Page, PageRequest
from application.tools.explain_agent import ExplainAgent, ExplainAgentCommand, ExplainedAgent
from domain.agents.agent import Agent, AgentSettings
from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ApiKeyId
from domain.runs.run import Run
from domain.tools.capabilities import NATIVE_TYPES
from interfaces.console.agents.form import CANARIES, SERVERS, TOOLS
from interfaces.console.agents.settings_fields import CHOICES
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.policy_rows import PREFIX
from interfaces.console.run_starters import RunStarters
from interfaces.console.teams import team_choices
from interfaces.console.version_changes import Change, changes
from interfaces.console.whole_lists import all_of
from interfaces.http.agents.views import agent_view

PAGE = 50
HISTORY = 10
MAX_SHOWN_TOOLS = 300
_AGENT_ACTIONS = "agent.*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLine:
    agent: Agent
    last_run: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A version: its author (None if the audit trail has no entry), and its changes (None for
    the first version)."""

    agent: Agent
    actor: str | None
    changes: tuple[Change, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Another user saved `agent` meanwhile: the changes, and the fields that both sides changed."""

    agent: Agent
    actor: str | None
    changes: tuple[Change, ...]
    both: tuple[str, ...]


class AgentPages:
    """Collects the data of the templates for a principal."""

    def __init__(
        self,
        *,
        get_agent: GetAgent,
        list_agents: ListAgents,
        list_agent_versions: ListAgentVersions,
        list_runs: ListRuns,
        list_audit_events: ListAuditEvents,
        list_mcp_servers: ListMcpServers,
        list_teams: ListTeams,
        get_organization: GetOrganization,
        explain_agent: ExplainAgent,
        run_starters: RunStarters,
    ) -> None:
        self._get_agent = get_agent
        self._list_agents = list_agents
        self._versions = list_agent_versions
        self._list_runs = list_runs
        self._list_audit = list_audit_events
        self._list_servers = list_mcp_servers
        self._list_teams = list_teams
        self._get_organization = get_organization
        self._explain = explain_agent
        self._starters = run_starters

    async def listed(self, principal: Principal, cursor: str | None) -> dict[str, object]:
        page = await self._list_agents.execute(principal=principal, page=PageRequest(limit=PAGE, cursor=cursor))

        async def line(agent: Agent) -> AgentLine:
            runs = await self._list_runs.execute(principal, RunFilter(agent_id=agent.id), PageRequest(limit=1))
            return AgentLine(agent=agent, last_run=runs.items[0] if runs.items else None)

        return {
            "agents": await asyncio.gather(*map(line, page.items)),
            "next_cursor": page.next_cursor,
            "may_change": principal.may(Permission.AGENTS_MANAGE),
        }

    async def of(self, principal: Principal, agent_id: str, *, person: str = "", at: str = "") -> dict[str, object]:
        """`person` is the id of who acts, by default the caller; `at` is when, by default now.
        Raises FORBIDDEN, NOT_FOUND, INVALID."""
        agent = await self._get_agent.execute(principal=principal, agent=agent_id)
        explained = await self.explained(
            principal, AgentSettings.of(agent.config), person=ApiKeyId(person) if person else None, at=_time(at)
        )
        return {
            "agent": agent,
            "view": agent_view(agent),
            **explained_context(explained),
            "explained_as": person,
            "explained_at": at,
            "may_explain_others": principal.may(Permission.GROUPS_MANAGE),
            **await self.history(principal, agent.id, None),
            "may_change": principal.may(Permission.AGENTS_MANAGE),
            "may_stop": principal.may(Permission.RUNS_CONTROL),
            "may_run": principal.may(Permission.RUNS_START),
        }

    async def history(self, principal: Principal, agent_id: str, cursor: str | None) -> dict[str, object]:
        """Versions, newest first, with their changes. Raises NOT_FOUND."""
        page = await self._version_page(principal, agent_id, HISTORY, cursor)
        before: tuple[Agent | None, ...] = page.items[1:]
        if page.next_cursor is None:
            before = (*before, None)
        else:
            before = (*before, *(await self._version_page(principal, agent_id, 1, page.next_cursor)).items)
        actors = await self._actors(principal, agent_id)
        return {
            "history": [
                HistoryEntry(
                    agent=agent,
                    actor=actors.get(agent.version),
                    changes=None if former is None else changes(agent_view(former), agent_view(agent)),
                )
                for agent, former in zip(page.items, before, strict=True)
            ],
            "history_cursor": page.next_cursor,
            "agent_id": agent_id,
        }

    async def conflict(self, principal: Principal, base: Agent, both: tuple[str, ...]) -> Conflict:
        """The changes of an agent since `base`. Raises NOT_FOUND."""
        now = await self._get_agent.execute(principal=principal, agent=base.id)
        actors = await self._actors(principal, base.id)
        return Conflict(
            agent=now,
            actor=actors.get(now.version),
            changes=changes(agent_view(base), agent_view(now)),
            both=both,
        )

    async def version(self, principal: Principal, agent_id: str, version: int) -> Agent | None:
        """One version, or None. Raises NOT_FOUND for the agent."""
        async for agent in self._all_versions(principal, agent_id):
            if agent.version == version:
                return agent
        return None

    async def explained(
        self,
        principal: Principal,
        settings: AgentSettings,
        *,
        person: ApiKeyId | None = None,
        at: datetime | None = None,
    ) -> ExplainedAgent:
        """Effective policies of its tools."""
        command = ExplainAgentCommand(principal=principal, settings=settings, person=person, at=at)
        return await self._explain.execute(command)

    async def form(
        self,
        principal: Principal,
        form: FormValues,
        *,
        faults: FieldFaults = NO_FAULTS,
        conflict: Conflict | None = None,
    ) -> dict[str, object]:
        """The form with its values and choices."""
        servers = await all_of(lambda page: self._list_servers.execute(principal=principal, page=page))
        organization = await self._get_organization.execute(principal=principal)
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        used = (model for agent in agents for model in agent.config.models)
        return {
            "form": form,
            "faults": faults,
            "conflict": conflict,
            # Chosen entries come first, in their order, so that saving an untouched form changes
            # nothing.
            "tools": _options(form, TOOLS, [kind.value for kind in NATIVE_TYPES]),
            "servers": _options(form, SERVERS, sorted(server.config.slug for server in servers)),
            "models": list(dict.fromkeys((*organization.models, *used))),
            "choices": CHOICES,
            "teams": team_choices(await self._list_teams.execute(principal), form["team"]),
            "rules": form.rows(PREFIX),
            "canaries": form.rows(CANARIES),
        }

    async def _version_page(self, principal: Principal, agent_id: str, limit: int, cursor: str | None) -> Page[Agent]:
        return await self._versions.execute(
            principal=principal, agent=agent_id, page=PageRequest(limit=limit, cursor=cursor)
        )

    async def _all_versions(self, principal: Principal, agent_id: str) -> AsyncIterator[Agent]:
        cursor: str | None = None
        while True:
            page = await self._version_page(principal, agent_id, MAX_PAGE_SIZE, cursor)
            for agent in page.items:
                yield agent
            if (cursor := page.next_cursor) is None:
                return

    async def _actors(self, principal: Principal, agent_id: str) -> dict[int, str]:
        """Who saved each version, by name, from the newest five hundred entries."""
        page = await self._list_audit.execute(
            principal=principal,
            wanted=AuditFilter(resource=agent_id, action=_AGENT_ACTIONS),
            page=PageRequest(limit=MAX_PAGE_SIZE),
        )
        actors = {
            version: event.actor for event in page.items if isinstance(version := event.details.get("version"), int)
        }
        names = await self._starters.names(principal, actors.values())
        return {version: names[actor] for version, actor in actors.items()}


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise invalid("time_invalid", f"{text!r} is no time, such as 2026-11-27T19:00:00+01:00.") from None


def explained_context(explained: ExplainedAgent) -> dict[str, object]:
    """Data of the table of tools; the first ones if there are very many."""
    return {
        "explained": explained.tools[:MAX_SHOWN_TOOLS],
        "explained_total": len(explained.tools),
        "standings": {
            standing.words: sum(each.standing is standing for each in explained.tools)
            for standing in dict.fromkeys(each.standing for each in explained.tools)
        },
        "warnings": explained.warnings,
        "unavailable": explained.unavailable,
        "unreadable": (),
    }


def _options(form: FormValues, prefix: str, known: list[str]) -> list[str]:
    return list(dict.fromkeys((*map(str, form.ticked(prefix)), *known)))
