"""Reading push notification configs."""

from application.a2a.ports import PushConfigStore
from application.runs.ports import RunReader
from application.runs.resume_run import require_own_or_operator
from domain.a2a.push import PushConfig
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId


class ListPushConfigs:
    """The configs of a task by their ids. Addresses may hold secrets, so runners read only those of
    tasks that they started."""

    def __init__(self, *, runs: RunReader, configs: PushConfigStore) -> None:
        self._runs = runs
        self._configs = configs

    async def execute(self, principal: Principal, run_id: RunId) -> tuple[PushConfig, ...]:
        """Raises NOT_FOUND, FORBIDDEN."""
        principal.require(Permission.RUNS_START)
        run = principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        require_own_or_operator(principal, run)
        return await self._configs.of_run(principal.organization_id, run_id)
