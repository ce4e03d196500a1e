"""Cancels a run: at once if no worker executes it, otherwise by a request to its worker."""

from dataclasses import dataclass

from application.runs.ports import RunReader
from application.runs.resume_run import require_own_or_operator
from application.runs.stop_run import StopRun
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId
from domain.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRunCommand:
    principal: Principal
    run_id: RunId


class CancelRun:
    """Rules:
    - Requires `runner` for the caller's own runs, `operator` for others.
    - `StopRun` has the rules of stopping.
    """

    def __init__(self, *, runs: RunReader, stop_run: StopRun) -> None:
        self._runs = runs
        self._stop_run = stop_run

    async def execute(self, command: CancelRunCommand) -> Run:
        """Raises NOT_FOUND, FORBIDDEN."""
        command.principal.require(Permission.RUNS_START)
        run = command.principal.found(
            await self._runs.get(command.principal.organization_id, command.run_id), "run", command.run_id
        )
        require_own_or_operator(command.principal, run)
        return existing(await self._stop_run.execute(run, actor=command.principal.key_id), "run", command.run_id)
