"""The right to execute a run."""

from dataclasses import dataclass

from domain.ids import OrganizationId, RunId, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write into a run. Valid while the stored run has this epoch."""

    run_id: RunId
    organization_id: OrganizationId
    thread_id: ThreadId
    epoch: int
