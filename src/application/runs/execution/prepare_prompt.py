"""Prepares the toolset and the system prompt of a run, which stay the same until the agent
changes."""

import json
import logging
from dataclasses import dataclass

from application.agents.calling_agent import caller_rules
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.policy.canary_guard import CanaryGuard
from application.runs.execution.compose_request import servers_overview, system_prompt, with_instructions
from application.runs.execution.run_session import RunSession
from application.runs.ports import RunReader
from application.runs.shared_state import read_on
from application.tools.call_context import scope_of_run
from application.tools.client_tools import with_client_tools
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.json_value import canonical_json
from domain.runs.called_by import CalledBy

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`fixed_bytes` is the size of the system prompt, the tool definitions and the output
    schema."""

    toolset: Toolset
    system: str
    fixed_bytes: int


class AgentDisabled(Exception):
    """The run's agent was disabled after the run was created."""


class PreparePrompt:
    """Rules:
    - The overview of servers is created once, at the run's start, and used for all its attempts.
      While MCP is switched off, or a lost connection hides tools, the overview says so instead.
    - The tools of a server with a lost shared connection leave the run at its next turn, if its
      strategy is `unregister`; they are back with the connection.
    - A change of the agent, its caller or its organization affects the run at its next turn.
    - Where policy depends on who acts and when, each turn and each reply has the toolset of that
      time.
    - A disabled agent has no prompt.
    - The client's own tools and instructions come after those of the agent, and its state if it
      sent another one when it resumed the run.
    """

    def __init__(
        self, *, catalog: ToolsetBuilder, agents: AgentStore, organizations: OrganizationStore, runs: RunReader
    ) -> None:
        self._catalog = catalog
        self._runs = runs
        self._agents = agents
        self._organizations = organizations

    async def execute(self, session: RunSession, previous: Prompt | None = None) -> Prompt:
        """The prompt of the next turn: `previous`, unless agent or organization have changed.
        Raises AgentDisabled, Interrupted, and TimeUp if discovery exceeds the run's time.
        """
        renewed = await self._renewed(session, first=previous is None)
        if previous is not None and not renewed and not await self._is_outdated(session, previous):
            return previous
        if not session.agent.config.enabled:
            raise AgentDisabled
        run = session.run
        toolset = await self._toolset(session)
        for problem in toolset.problems:
            logger.warning("tool left out", extra={"run_id": run.id, "problem": problem})
        overview = run.overview
        if overview is None or toolset.is_reduced:
            overview = servers_overview(toolset)
        if run.overview is None and not toolset.is_reduced:
            session.run = run.advanced(usage=run.usage, overview=overview)
        # Placeholders of canary tokens are those of the agent only.
        system = with_instructions(
            session.guard.filled(system_prompt(session.agent.config, overview)), await self._instructions(session)
        )
        schema = session.output_schema
        fixed_bytes = len(system.encode()) + toolset.definition_bytes
        if schema is not None:
            fixed_bytes += len(canonical_json(schema).encode())
        return Prompt(toolset=toolset, system=system, fixed_bytes=fixed_bytes)

    async def _instructions(self, session: RunSession) -> str | None:
        """Those of the client, and its state if it sent another one since the start."""
        run = session.run
        if not run.shares_state:
            return run.instructions
        state = await read_on(session.shared_state, self._runs, run)
        if not state.is_replaced:
            return run.instructions
        now = f"State of the application now: {json.dumps(state.value, ensure_ascii=False)}"
        return "\n\n".join(filter(None, (run.instructions, now)))

    async def toolset_of_reply(self, session: RunSession, prompt: Prompt) -> Toolset:
        """The toolset that decides about the calls of a reply: the prompt's, unless policy depends
        on who acts and when. Raises as `execute`."""
        return await self._toolset(session) if prompt.toolset.is_conditional else prompt.toolset

    async def _toolset(self, session: RunSession) -> Toolset:
        run = session.run
        with session.stop.interruptible(max(session.time_left_s, 0)):
            toolset = await self._catalog.toolset(
                session.agent.config,
                scope_of_run(run),
                run_allowlist=run.tool_allowlist,
                wired=run.wired,
                caller=session.caller,
                actor=run.requested_by,
            )
        session.toolset = with_client_tools(toolset, run.tools_of_client)
        return session.toolset

    async def _is_outdated(self, session: RunSession, previous: Prompt) -> bool:
        if previous.toolset.is_conditional:
            return True
        return await self._catalog.is_outdated(previous.toolset, session.run.organization_id)

    async def _renewed(self, session: RunSession, *, first: bool) -> bool:
        """Read organization, agent and caller again. Returns whether anything changed."""
        before = session.organization
        organization = await self._organizations.get(session.run.organization_id)
        is_new = first or before is None or organization is None or organization.version != before.version
        if is_new:
            session.govern(organization)
        if not first:
            newest = await self._agents.get(session.run.organization_id, session.agent.id)
            if newest is not None and newest.version != session.agent.version:
                await CanaryGuard.prepared(newest, session.run.id)  # so that the session finds its forms ready
                session.adopt(newest)
                is_new = True
        run = session.run
        called_by = CalledBy.of(run.metadata)
        caller = await caller_rules(self._agents, run.organization_id, called_by, session.agent.config)
        is_new = is_new or caller != session.caller
        session.caller = caller
        return is_new
