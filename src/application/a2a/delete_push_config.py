"""DeletePushConfig: send no more states of a task to an address."""

from dataclasses import dataclass

from application.a2a.ports import PushConfigStore
from application.audit.entries import audit_entry
from application.runs.ports import RunReader
from application.runs.resume_run import require_own_or_operator
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePushConfigCommand:
    principal: Principal
    run_id: RunId
    config_id: str


class DeletePushConfig:
    """Rules:
    - Requires `runner` for tasks of the caller, `operator` for others.
    - Deliveries of the config are removed with it, also those under way in so far as they are not
      repeated.
    - Deleting what is not there changes nothing.
    - Audited as `push_config.deleted`.

    Raises: ServiceError run_not_found, forbidden.
    """

    def __init__(self, *, runs: RunReader, configs: PushConfigStore, clock: Clock, ids: IdSource) -> None:
        self._runs = runs
        self._configs = configs
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeletePushConfigCommand) -> None:
        principal, run_id = command.principal, command.run_id
        principal.require(Permission.RUNS_START)
        run = principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        require_own_or_operator(principal, run)
        audit = audit_entry(
            principal,
            AuditAction.PUSH_CONFIG_DELETED,
            command.config_id,
            ids=self._ids,
            at=self._clock.now(),
            run_id=run_id,
            details={"run_id": run_id},
        )
        await self._configs.remove(principal.organization_id, run_id, command.config_id, audit)
