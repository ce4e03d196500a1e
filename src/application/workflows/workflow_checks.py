"""Checks a workflow as a whole: compilation, and existence of everything that it names."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from application.agents.agent_lookup import stored_agent
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.identity.team_checks import TeamChecks
from application.mcp.literal_secrets import (
    literal_secrets_in_args,
    literal_secrets_in_command,
    literal_secrets_in_url,
)
from application.mcp.ports import McpServerStore
from application.policy.ports import SchemaValidator
from application.secrets.ports import SecretStore
from application.system.ports import OutboundPolicy
from application.workflows.ports import Expressions
from domain.agents.agent import Agent
from domain.errors import Violation, invalid
from domain.identity.api_key import Owned, Principal
from domain.mcp.server import McpServerConfig
from domain.policy.layers import PolicyLayers
from domain.policy.rules import NO_POLICIES, Verdict
from domain.teams import may_use
from domain.tools.names import agent_tool_name
from domain.workflows.compiler import Compilation, compile_workflow
from domain.workflows.faults import Fault, FaultCode
from domain.workflows.graph import AgentNodeConfig, McpServerNodeConfig, NodeKind, WorkflowDefinition
from domain.workflows.plan import Plan

MAX_FAULTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedWorkflow:
    """`plan` is set exactly if there are no `faults`. Warnings do not prevent saving."""

    plan: Plan | None
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]


class WorkflowChecks:
    """Reports all faults at once, up to MAX_FAULTS:
    - the graph, JMESPath expressions and JSON Schemas
    - agents, MCP servers and secrets that do not exist, and a team that the caller may not give to
    - agents and MCP servers that belong to another team than the workflow. To a caller who does not
      see them, they do not exist
    - agents as tools that the policies of their callers do not permit
    - servers' addresses that egress forbids, and plain secrets in servers' arguments and URLs
    """

    def __init__(
        self,
        *,
        expressions: Expressions,
        schemas: SchemaValidator,
        agents: AgentStore,
        organizations: OrganizationStore,
        servers: McpServerStore,
        secrets: SecretStore,
        outbound: OutboundPolicy,
        team_checks: TeamChecks,
    ) -> None:
        self._teams = team_checks
        self._expressions = expressions
        self._schemas = schemas
        self._agents = agents
        self._organizations = organizations
        self._servers = servers
        self._secrets = secrets
        self._outbound = outbound

    async def check(
        self, principal: Principal, definition: WorkflowDefinition, *, former_team: str | None = None
    ) -> CheckedWorkflow:
        """`former_team` is that of the stored workflow."""
        compilation, usable = compile_workflow(definition), _Usable(principal=principal, team=definition.team)
        faults = list(compilation.faults)
        faults += self._unusable_expressions(compilation)
        faults += await self._unusable_schemas(compilation)
        if (of_team := await self._teams.violation(principal, definition.team, former=former_team)) is not None:
            message = f"{of_team.message[0].upper()}{of_team.message[1:]}."
            faults.append(Fault(code=FaultCode.UNKNOWN_TEAM, message=message, node_ids=(), path=of_team.path))
        faults += await self._missing(usable, compilation)
        faults += await self._not_permitted(usable, compilation)
        plan = None if faults else compilation.plan
        return CheckedWorkflow(plan=plan, faults=_first(faults), warnings=compilation.warnings)

    async def require(
        self, principal: Principal, definition: WorkflowDefinition, *, former_team: str | None = None
    ) -> CheckedWorkflow:
        """`check` before saving. Raises INVALID `workflow_invalid`, one violation per fault."""
        checked = await self.check(principal, definition, former_team=former_team)
        if checked.faults:
            raise invalid(
                "workflow_invalid",
                "The workflow is not valid.",
                *(Violation(path=place_of(fault, definition), message=fault.message) for fault in checked.faults),
            )
        return checked

    def _unusable_expressions(self, compilation: Compilation) -> Iterator[Fault]:
        told = set()
        for placed in compilation.expressions:
            problem = self._expressions.problem_with(placed.text)
            key = (placed.node_id, placed.path, placed.text)
            if problem is not None and key not in told:
                told.add(key)
                yield Fault(
                    code=FaultCode.EXPRESSION_INVALID,
                    message=f"{_field(placed.path)} is not a JMESPath expression: {problem}.",
                    node_ids=(placed.node_id,),
                    path=placed.path,
                )

    async def _unusable_schemas(self, compilation: Compilation) -> list[Fault]:
        faults = []
        for found in compilation.schemas:
            problem = self._schemas.problem_with(found.schema)
            await asyncio.sleep(0)  # other requests go first: a large schema takes a while
            if problem is not None:
                message = f"{_field(found.path)} is not a JSON Schema that can be used: {problem}."
                faults.append(
                    Fault(code=FaultCode.SCHEMA_INVALID, message=message, node_ids=(found.node_id,), path=found.path)
                )
        return faults

    async def _missing(self, usable: "_Usable", compilation: Compilation) -> list[Fault]:
        organization_id = usable.principal.organization_id
        faults = []
        for node in compilation.nodes:
            match node.config:
                case AgentNodeConfig(agent=name) if name:
                    problem = usable.problem_with(
                        await stored_agent(self._agents, organization_id, name), "agent", name
                    )
                    code, message, path = FaultCode.UNKNOWN_AGENT, problem, "config.agent"
                case McpServerNodeConfig(inline=McpServerConfig() as inline):
                    wrong = self._wrong_server(inline)
                    if wrong is None:
                        continue
                    code, path = FaultCode.CONFIG_INVALID, f"config.server.{wrong.path}"
                    message = f"server.{wrong.path} {wrong.message}."
                case McpServerNodeConfig(server=slug) if slug:
                    server = await self._servers.get(organization_id, slug)
                    named = server if server is not None and server.config.slug == slug else None
                    code, message = FaultCode.UNKNOWN_SERVER, usable.problem_with(named, "MCP server", slug)
                    path = "config.server"
                case _:
                    continue
            if message is None:
                continue
            faults.append(Fault(code=code, message=message, node_ids=(node.id,), path=path))
        for placed in compilation.secrets:
            if await self._secrets.get(organization_id, placed.text) is None:
                message = f"There is no secret {placed.text!r}."
                faults.append(
                    Fault(code=FaultCode.UNKNOWN_SECRET, message=message, node_ids=(placed.node_id,), path=placed.path)
                )
        return faults

    async def _not_permitted(self, usable: "_Usable", compilation: Compilation) -> list[Fault]:
        """Agents as tools that their callers would never see."""
        nodes = {node.id: node for node in compilation.nodes}
        faults = []
        for node in compilation.nodes:
            called = [tool for tool in node.connected_tool_node_ids if nodes[tool].kind is NodeKind.AGENT]
            if not called or not isinstance(node.config, AgentNodeConfig):
                continue
            caller = await self._agent(usable, node.config.agent)
            layers = None if caller is None else await self._layers(caller)
            for node_id in called:
                config = nodes[node_id].config
                agent = await self._agent(usable, config.agent) if isinstance(config, AgentNodeConfig) else None
                if layers is None or agent is None:
                    continue
                name = agent_tool_name(agent.config.name)
                policy = layers.resolve(name)
                if policy.hidden_by is not None or policy.decision is Verdict.DENY:
                    message = f"The policies of {node.id!r} do not permit the tool {name!r} of {node_id!r}."
                    ids = (node_id, node.id)
                    faults.append(
                        Fault(code=FaultCode.TOOL_NOT_PERMITTED, message=message, node_ids=ids, path="config.agent")
                    )
        return faults

    async def _layers(self, agent: Agent) -> PolicyLayers:
        """What any person may do at any time."""
        organization = await self._organizations.get(agent.organization_id)
        return PolicyLayers(
            organization=NO_POLICIES if organization is None else organization.tool_policies.at_their_mildest(),
            agent=agent.config.tool_policies.at_their_mildest(),
            organization_allowlist=None if organization is None else organization.tool_allowlist,
            agent_allowlist=agent.config.tool_allowlist,
        )

    def _wrong_server(self, settings: McpServerConfig) -> Violation | None:
        """The fault that a registered server with these settings would have, if any."""
        if settings.url is not None and (refusal := self._outbound.refusal(settings.url)) is not None:
            return Violation(path="url", message=refusal)
        of_url = [] if settings.url is None else literal_secrets_in_url(settings.url)
        of_start = [*literal_secrets_in_command(settings.command), *literal_secrets_in_args(settings.args)]
        return next(iter([*of_url, *of_start]), None)

    async def _agent(self, usable: "_Usable", name: str) -> Agent | None:
        agent = await stored_agent(self._agents, usable.principal.organization_id, name)
        return agent if usable.problem_with(agent, "agent", name) is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Usable:
    """What the caller may name in a workflow of `team`."""

    principal: Principal
    team: str | None

    def problem_with(self, found: Owned | None, what: str, name: str) -> str | None:
        if found is None or not self.principal.sees(found.team):
            return f"There is no {what} {name!r}."
        if not may_use(self.team, found.team):
            return f"The {what} {name!r} belongs to the team {found.team!r}: only its workflows use it."
        return None


def place_of(fault: Fault, definition: WorkflowDefinition) -> str:
    """The location of a fault in the definition: `nodes.2.config.url`, `edges.3.source`."""
    if fault.path in ("name", "team") or fault.path.startswith(("edges", "nodes")):
        return fault.path
    index = next((at for at, node in enumerate(definition.nodes) if node.id in fault.node_ids[:1]), None)
    if index is None:
        return "nodes"
    return f"nodes.{index}.{fault.path}" if fault.path else f"nodes.{index}"


def _first(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The first faults, and how many there are if that is more."""
    if len(faults) <= MAX_FAULTS:
        return tuple(faults)
    message = f"The workflow has {len(faults)} faults; the first {MAX_FAULTS} are listed."
    return (*faults[:MAX_FAULTS], Fault(code=FaultCode.TOO_LARGE, message=message, node_ids=(), path="nodes"))


def _field(path: str) -> str:
    return path.removeprefix("config.")
