"""Ports of the agents slice."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.audit.event import AuditEvent
from domain.ids import AgentId, OrganizationId
from domain.runs.model_settings import ModelSettings
from domain.teams import Teams
from domain.tools.capabilities import ToolType


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentName:
    """The name of an agent, also after its deletion."""

    name: str
    deleted: bool


class AgentStore(Protocol):
    """Agents with all their versions. Each write stores its audit event."""

    async def add(self, agent: Agent, audit: AuditEvent) -> None:
        """Raises CONFLICT `agent_name_taken` if the name is in use in the organization, `team_gone`
        without a group of the name of its team."""

    async def save(self, agent: Agent, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a new version. Raises NOT_FOUND, PRECONDITION `version_conflict` if the stored
        version is not `expected_version`, CONFLICT `agent_name_taken` if the new name is in use,
        `team_gone` as `add` for another team than before."""
        ...

    async def get(self, organization_id: OrganizationId, agent_id: AgentId) -> Agent | None:
        """The newest version."""

    async def find(self, organization_id: OrganizationId, name: str) -> Agent | None:
        """The newest version of the agent with that name."""

    async def names(
        self, organization_id: OrganizationId, agent_ids: Collection[AgentId], *, teams: Teams = None
    ) -> Mapping[AgentId, AgentName]:
        """Names of these agents, as far as they are seen with `teams`, including deleted ones, in
        one query."""

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Agent]:
        """Agents at their newest version, newest agent first."""
        ...

    async def versions(self, organization_id: OrganizationId, agent_id: AgentId, request: PageRequest) -> Page[Agent]:
        """All versions of one agent, newest first; empty if there is no such agent."""
        ...

    async def delete(self, organization_id: OrganizationId, agent_id: AgentId, audit: AuditEvent) -> bool:
        """Remove the agent from use: its versions stay readable for its runs, its name becomes
        free. False if there is none. Raises CONFLICT `agent_busy` while a run of it is
        unfinished."""


class ModelDirectory(Protocol):
    """The available models."""

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        """Why `PROVIDER:NAME` cannot be used (unknown provider, missing key, missing script), or
        None if it can."""
        ...

    async def not_taken(self, organization_id: OrganizationId, model: str, settings: ModelSettings) -> tuple[str, ...]:
        """Names of the settings that the model refuses, as far as its family is known. Empty for an
        unusable model."""
        ...


class NativeToolDirectory(Protocol):
    """The native tools of this installation."""

    @property
    def native_types(self) -> tuple[ToolType, ...]:
        """The types that an agent may list in `tools`."""
