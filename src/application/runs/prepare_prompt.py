"""Prepares what stays the same from turn to turn of a run: the toolset and the system prompt, until the agent changes."""

import json
import logging
from dataclasses import dataclass, replace

from application.agents.ports import AgentStore
from application.mcp.ports import ConnectionScope
from application.runs.compose_request import servers_overview, system_prompt
from application.runs.run_session import RunSession
from application.tools.tool_catalog import ToolCatalog
from application.tools.toolset import Toolset
from domain.agents.agent import AgentConfig
from domain.runs.run import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`fixed_bytes` is the size of the system prompt and the tool definitions together."""

    toolset: Toolset
    system: str
    fixed_bytes: int


class PreparePrompt:
    """Rules: the overview of servers is made once, at the run's start, and kept for all its attempts; a change of the agent
    reaches the run at its next turn."""

    def __init__(self, *, catalog: ToolCatalog, agents: AgentStore) -> None:
        self._catalog = catalog
        self._agents = agents

    async def execute(self, session: RunSession, previous: Prompt | None = None) -> Prompt:
        """The prompt for the coming turn: `previous`, unless the agent has changed since. Raises Interrupted, and
        TimeUp when discovery uses the run's time up."""
        former = session.agent.config
        if previous is not None:
            newest = await self._agents.get(session.run.organization_id, session.agent.id)
            if newest is None or newest.version == session.agent.version:
                return previous
            session.agent = newest
        model = _model_in_force(session.run, former, session.agent.config)
        run = session.run = replace(session.run, agent_version=session.agent.version, model=model)
        scope = ConnectionScope(organization_id=run.organization_id, thread_id=run.thread_id, run_id=run.id)
        async with session.stop.interruptible(max(session.work_time_left_s, 0)):
            toolset = await self._catalog.toolset(session.agent.config, scope, run_allowlist=run.tool_allowlist)
        for problem in toolset.problems:
            logger.warning("tool left out", extra={"run_id": run.id, "problem": problem})
        overview = servers_overview(toolset) if run.overview is None else run.overview
        session.run = replace(run, overview=overview)
        system = system_prompt(session.agent.config, overview)
        definitions = sum(
            len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters)) for tool in toolset.tools
        )
        return Prompt(toolset=toolset, system=system, fixed_bytes=len(system.encode()) + definitions)


def _model_in_force(run: Run, former: AgentConfig, newest: AgentConfig) -> str:
    """A run that was on its agent's model follows it; one on another model stays there while the agent lists it."""
    follows = run.model == former.model or run.model not in newest.models
    return newest.model if follows else run.model
