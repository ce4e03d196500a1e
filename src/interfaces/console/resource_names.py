"""Names what ids refer to, for pages that list many of them, with the page about each."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from application.agents.name_agents import NameAgents
from application.identity.ports import IdentityStore, UserStore
from application.mcp.queries import GetMcpServer
from application.runs.queries import GetRun
from application.schedules.queries import GetSchedule
from application.workflows.queries import GetWorkflow
from application.workflows.run_queries import GetWorkflowRun
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import AgentId, ApiKeyId, RunId, UserId, WorkflowRunId
from interfaces.console.pages import asked
from interfaces.console_paths import PATH

_SCHEDULE = "schedule:"
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """In words, with the page about it, if there is one that the reader may open, and its id for
    those who need it."""

    name: str
    link: str | None = None
    id: str | None = None


class ResourceNames:
    """Rules:
    - Each id is read once per list, some at once.
    - What is deleted, of a kind without names, or of another organization is called by its id.
    """

    def __init__(
        self,
        *,
        identities: IdentityStore,
        users: UserStore,
        name_agents: NameAgents,
        get_schedule: GetSchedule,
        get_mcp_server: GetMcpServer,
        get_run: GetRun,
        get_workflow: GetWorkflow,
        get_workflow_run: GetWorkflowRun,
    ) -> None:
        self._identities = identities
        self._users = users
        self._name_agents = name_agents
        self._get_schedule = get_schedule
        self._get_server = get_mcp_server
        self._get_run = get_run
        self._get_workflow = get_workflow
        self._get_workflow_run = get_workflow_run
        self._readers: dict[str, Callable[[Principal, str], Awaitable[Named]]] = {
            "usr": self._user,
            "key": self._key,
            "sch": self._schedule,
            "agt": self._agent,
            "mcp": self._server,
            "run": self._run,
            "wfl": self._workflow,
            "wfr": self._workflow_run,
        }

    async def of(self, principal: Principal, ids: Iterable[str | None]) -> dict[str, Named]:
        """By id; ids may be prefixed with `schedule:`, as actors are."""
        wanted = [each for each in dict.fromkeys(ids) if each is not None]
        places = asyncio.Semaphore(_AT_ONCE)

        async def named(identifier: str) -> Named:
            async with places:
                return await self._named(principal, identifier)

        return dict(zip(wanted, await asyncio.gather(*map(named, wanted)), strict=True))

    async def _named(self, principal: Principal, identifier: str) -> Named:
        plain = identifier.removeprefix(_SCHEDULE)
        reader = self._schedule if plain != identifier else self._readers.get(plain[:3])
        if reader is None:
            return Named(name=identifier)
        try:
            return await reader(principal, plain)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return Named(name="a deleted schedule" if plain != identifier else identifier, id=plain)

    async def _user(self, principal: Principal, user_id: str) -> Named:
        user = await self._users.get(principal.organization_id, UserId(user_id))
        name = user_id if user is None else user.name or user.email or user_id
        link = f"{PATH}/people" if principal.may(Permission.USERS_MANAGE) else None
        return Named(name=name, link=link, id=user_id)

    async def _key(self, principal: Principal, key_id: str) -> Named:
        key = await self._identities.key(principal.organization_id, ApiKeyId(key_id))
        link = f"{PATH}/keys" if key is not None and principal.may(Permission.KEYS_MANAGE) else None
        return Named(name=key_id if key is None else key.name, link=link, id=key_id)

    async def _schedule(self, principal: Principal, schedule_id: str) -> Named:
        schedule = await self._get_schedule.execute(principal, schedule_id)
        place = f"/{schedule.id}" if principal.may(Permission.SCHEDULES_MANAGE) else ""
        return Named(name=f"schedule {schedule.name}", link=f"{PATH}/schedules{place}", id=schedule_id)

    async def _agent(self, principal: Principal, agent_id: str) -> Named:
        found = (await self._name_agents.execute(principal, (AgentId(agent_id),))).get(AgentId(agent_id))
        if found is None:
            return Named(name=agent_id)
        link = None if found.deleted else f"{PATH}/agents/{agent_id}"
        return Named(name=found.name, link=link, id=agent_id)

    async def _server(self, principal: Principal, server_id: str) -> Named:
        slug = (await self._get_server.execute(principal, server_id)).config.slug
        return Named(name=slug, link=f"{PATH}/servers/{slug}", id=server_id)

    async def _run(self, principal: Principal, run_id: str) -> Named:
        run = await self._get_run.execute(principal, RunId(run_id))
        return Named(name=asked(run), link=f"{PATH}/runs/{run_id}", id=run_id)

    async def _workflow(self, principal: Principal, workflow_id: str) -> Named:
        workflow = await self._get_workflow.execute(principal, workflow_id)
        return Named(name=workflow.definition.name, link=f"{PATH}/workflows/{workflow_id}", id=workflow_id)

    async def _workflow_run(self, principal: Principal, run_id: str) -> Named:
        run = await self._get_workflow_run.execute(principal, WorkflowRunId(run_id))
        workflow = await self._named(principal, run.workflow_id)
        name = "a workflow" if workflow.name == run.workflow_id else f"workflow {workflow.name}"
        return Named(name=name, link=f"{PATH}/workflows/runs/{run_id}", id=run_id)
