"""Names who or what started runs: a schedule, a workflow, an agent, a gateway session, a run before
it, a key, or a person."""

from collections.abc import Iterable, Mapping

from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.runs.called_by import CalledBy
from domain.runs.run import Run
from interfaces.console.resource_names import Named, ResourceNames
from interfaces.console_paths import PATH

_WORKFLOW_RUN = "wfr_"
_NOBODY = Named(name="–")


class RunStarters:
    """Above: pages that list runs, or what people changed. Below: `ResourceNames`."""

    def __init__(self, *, resource_names: ResourceNames) -> None:
        self._names = resource_names

    async def of(self, principal: Principal, runs: Iterable[Run]) -> dict[RunId, Named]:
        """By run."""
        runs = tuple(runs)
        names = await self._names.of(principal, (each for run in runs for each in _ids_of(run)))
        return {run.id: _by_cause(run, names) or names.get(run.requested_by or "", _NOBODY) for run in runs}

    async def names(self, principal: Principal, ids: Iterable[str | None]) -> dict[str, str]:
        """Names of keys, users and schedules by their ids; an id without a name is its own."""
        return {each: named.name for each, named in (await self._names.of(principal, ids)).items()}


def _ids_of(run: Run) -> tuple[str | None, ...]:
    called_by = CalledBy.of(run.metadata)
    return (run.requested_by, _workflow_run_of(run), None if called_by is None else called_by.agent_id)


def _workflow_run_of(run: Run) -> str | None:
    """From the metadata, in which clients may have written anything."""
    found = run.metadata.get("workflow_run_id")
    return found if isinstance(found, str) and found.startswith(_WORKFLOW_RUN) else None


def _by_cause(run: Run, names: Mapping[str, Named]) -> Named | None:
    """What started it, if it was no key itself."""
    if run.retry_of is not None:
        return Named(name="retry", link=f"{PATH}/runs/{run.retry_of}")
    workflow_run = _workflow_run_of(run)
    if workflow_run is not None and names[workflow_run].link is not None:
        return names[workflow_run]
    called_by = CalledBy.of(run.metadata)
    if called_by is None:
        return None
    name = "an agent" if called_by.agent_id is None else f"agent {names[called_by.agent_id].name}"
    link = f"{PATH}/gateway" if called_by.run_id is None else f"{PATH}/runs/{called_by.run_id}"
    return Named(name=name, link=link, id=called_by.caller_id)
