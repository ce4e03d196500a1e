"""Gauges of runs: how many run and wait, and how many may, of the organization, of agents and of
users."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from application.agents.queries import ListAgents
from application.identity.ports import IdentityStore
from application.identity.queries import GetOrganization
from application.runs.ports import RunFilter
from application.runs.queries import GetQueue, ListRuns
from application.runs.queue_lines import QueueLine
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.ids import ApiKeyId, UserId
from domain.runs.run import RunStatus
from interfaces.console.user_limits_form import shown_limits
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH
from interfaces.http.organization.views import user_limits_view

_ACTIVE = RunFilter(statuses=frozenset({RunStatus.QUEUED, RunStatus.IN_PROGRESS}))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGauge:
    """Runs now, of `bound` that may be; None: any number. `name` None: of the organization.
    `is_more`: there are more than were counted."""

    name: str | None
    link: str
    what: str
    used: int
    bound: int | None
    is_more: bool = False

    @property
    def percent(self) -> int | None:
        return None if self.bound is None else min(100, round(100 * self.used / self.bound))


class RunLimits:
    """Rules:
    - The organization's running and queued runs are always shown, those of agents where they are
      bounded.
    - Of users who have a limit of active runs, those who have any now are shown. The newest active
      runs are counted, with those of keys that users made where keys count for users.
    - Figures are up to a few seconds old.
    """

    def __init__(
        self,
        *,
        get_organization: GetOrganization,
        list_agents: ListAgents,
        get_queue: GetQueue,
        list_runs: ListRuns,
        identities: IdentityStore,
    ) -> None:
        self._identities = identities
        self._list_runs = list_runs
        self._get_organization = get_organization
        self._list_agents = list_agents
        self._get_queue = get_queue

    async def of(self, principal: Principal) -> dict[str, object]:
        """The fullest agents first."""
        organization = await self._get_organization.execute(principal)
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        lines = await self._get_queue.recent(principal)
        whole = [
            _gauge(None, f"{PATH}/queue", what, lines, bound)
            for what, bound in (("running", organization.max_running), ("queued", organization.max_queued))
        ]
        of_agents = [
            _gauge(agent.config.name, f"{PATH}/agents/{agent.id}", what, own, bound)
            for agent in agents
            for own in [[line for line in lines if line.agent_id == agent.id]]
            for what, bound in (("running", agent.config.max_running), ("queued", agent.config.max_queued))
            if bound is not None
        ]
        return {
            "runs": whole,
            "limits_of_each": shown_limits(user_limits_view(organization.user_limits)),
            "runs_of_users": await self._of_users(principal, organization),
            "runs_of_agents": sorted(of_agents, key=lambda each: (-(each.percent or 0), each.name or "", each.what)),
        }

    async def _of_users(self, principal: Principal, organization: Organization) -> list[RunGauge]:
        if organization.user_limits.max_active_runs is None and not organization.limits_of_users:
            return []
        page = await self._list_runs.execute(principal, _ACTIVE, PageRequest(limit=MAX_PAGE_SIZE))
        starters = [run.requested_by for run in page.items if run.requested_by is not None]
        makers: Mapping[ApiKeyId, UserId] = {}
        if organization.keys_count_for_users:
            makers = await self._identities.creators(organization.id, {*starters})
        users = (organization.user_behind(starter, makers.get(starter)) for starter in starters)
        active = Counter(user for user in users if user is not None)
        return [
            RunGauge(
                name=user,
                link=f"{PATH}/runs",
                what="active",
                used=count,
                bound=bound,
                is_more=page.next_cursor is not None,
            )
            for user, count in active.most_common()
            if (bound := organization.limits_of(user).max_active_runs) is not None
        ]


def _gauge(name: str | None, link: str, what: str, lines: Iterable[QueueLine], bound: int | None) -> RunGauge:
    used = sum(line.running if what == "running" else line.queued for line in lines)
    return RunGauge(name=name, link=link, what=what, used=used, bound=bound)
