"""A run: one execution of an agent on a thread. Illegal transitions raise."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.copies import with_changes
from domain.errors import ServiceError, conflict
from domain.ids import AgentId, ApiKeyId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject
from domain.runs.lane import Lane
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.provider_error import ProviderError
from domain.runs.usage import Usage
from domain.runs.webhook import WebhookNote
from domain.threads.message import ToolUse, UserContent
from domain.tools.client_tool import ClientTool
from domain.tools.state_tool import STATE_TOOL
from domain.tools.tool import Tool
from domain.tools.wired import WiredNodes


class RunStatus(StrEnum):
    """The status of a run; the values are public."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    REQUIRES_ACTION = "requires_action"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    HALTED = "halted"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL_STATUSES

    @property
    def is_active(self) -> bool:
        """Whether the run blocks its thread: at most one run of a thread is active."""
        return self in ACTIVE_STATUSES


TERMINAL_STATUSES = frozenset(
    {RunStatus.COMPLETED, RunStatus.INCOMPLETE, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.HALTED}
)
ACTIVE_STATUSES = frozenset({RunStatus.IN_PROGRESS, RunStatus.REQUIRES_ACTION})

SUSPECT_AFTER = 3
"""After so many lost workers in a row, a run is suspected of ending workers: a worker executes one
suspect at a time."""
MAX_LEASE_EXPIRATIONS = 10
"""After so many lost workers in a row, a run fails."""

_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.IN_PROGRESS, RunStatus.CANCELLED, RunStatus.FAILED}),
    RunStatus.IN_PROGRESS: frozenset(
        {RunStatus.QUEUED, RunStatus.REQUIRES_ACTION, *TERMINAL_STATUSES},
    ),
    RunStatus.REQUIRES_ACTION: frozenset(
        {RunStatus.QUEUED, RunStatus.CANCELLED, RunStatus.FAILED, RunStatus.COMPLETED},
    ),
}


class MultitaskStrategy(StrEnum):
    """How a new run treats unfinished runs of its thread."""

    ENQUEUE = "enqueue"
    REJECT = "reject"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"

    @property
    def stops_others(self) -> bool:
        """Whether the new run replaces the thread's unfinished runs."""
        return self in (MultitaskStrategy.INTERRUPT, MultitaskStrategy.ROLLBACK)

    @property
    def looks_at(self) -> int | None:
        """How many unfinished runs, from the first of the queue, decide about a start; None: all.
        Only the first may be suspended; the second shows whether another waits."""
        return None if self.stops_others else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a run failed: a stable code and a public sentence. `provider_error` is set if the model
    provider is the reason."""

    code: str
    detail: str
    provider_error: ProviderError | None = None


@dataclass(frozen=True, kw_only=True)  # no slots: `with_changes` copies its fields at once
class Run:
    """The state of a run, without its messages and events.

    - `limits` and `tool_allowlist` narrow those of the agent; `model_settings` replace the agent's
      one by one.
    - `output_schema` replaces the agent's. `output_json` is the object in the answer that matches
      the schema.
    - With `wired` the run has the tools of these workflow nodes instead of its agent's.
    - `attempt` counts claims. `lapses` counts the lost workers that are attributed to the run
      (`domain/runs/lost_workers.py`) since a worker last stored a step.
    - `epoch` fences writes of former workers. `last_seq` is the number of the newest event.
    - `active_s` is the active time of former attempts, in seconds.
    - `client_tools` are functions that the client defines and settles. `instructions` follow those
      of the agent.
    - `history_key` is the digest of the conversation up to this run, by which a client without
      thread ids finds it. `client_request` is what the answers of a client's protocol repeat from
      its request.
    - `lane` decides about its place among waiting runs of the organization.
    - `team` is the group that its thread belongs to; None: to the organization.
    - `retry_of` is the failed run that this run continues; its message is already in the thread.
    """

    id: RunId
    organization_id: OrganizationId
    thread_id: ThreadId
    agent_id: AgentId
    agent_version: int
    status: RunStatus
    input: tuple[UserContent, ...]
    model: str
    limits: LimitSettings
    tool_allowlist: tuple[str, ...] | None
    metadata: JsonObject
    requested_by: ApiKeyId | None
    created_at: datetime
    lane: Lane = Lane.NORMAL
    model_settings: ModelSettings = NO_SETTINGS
    output_schema: JsonObject | None = None
    webhook: WebhookNote | None = None
    wired: WiredNodes | None = None
    output: str | None = None
    output_json: JsonObject | None = None
    error: RunError | None = None
    incomplete_reason: IncompleteReason | None = None
    pending: tuple[ToolUse, ...] = ()
    usage: Usage = Usage()
    attempt: int = 0
    lapses: int = 0
    epoch: int = 0
    last_seq: int = 0
    active_s: float = 0.0
    overview: str | None = None
    cancel_requested_by: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_of: RunId | None = None
    client_tools: tuple[ClientTool, ...] = ()
    instructions: str | None = None
    history_key: str | None = None
    client_request: JsonObject | None = None
    team: str | None = None

    def claimed(self, *, at: datetime, agent_version: int | None = None) -> "Run":
        """A worker claims the run: a new epoch starts, with the agent's newest version if one is
        given."""
        return with_changes(
            self,
            status=self._next(RunStatus.IN_PROGRESS),
            agent_version=agent_version or self.agent_version,
            epoch=self.epoch + 1,
            attempt=self.attempt + 1,
            started_at=self.started_at or at,
        )

    def handed_back(self) -> "Run":
        """The worker hands the run back (drain, lost lease); the new epoch fences its writes."""
        if self.status is not RunStatus.IN_PROGRESS:  # a suspended run is queued only by `resumed`
            raise self._illegal(RunStatus.QUEUED)
        return with_changes(self, status=self._next(RunStatus.QUEUED), epoch=self.epoch + 1)

    def lease_expired(self, *, counts: bool = True) -> "Run":
        """The lease of the run's worker expired. `counts`: the lost worker is attributed to this
        run."""
        return with_changes(self.handed_back(), lapses=self.lapses + counts)

    @property
    def shares_state(self) -> bool:
        """Whether its client sent a state."""
        return "state" in (self.client_request or {})

    @property
    def tools_of_client(self) -> tuple[Tool, ...]:
        """The client's functions, and the tool that changes its state if it sent one. A function of
        this name replaces it."""
        tools = tuple(tool.as_tool() for tool in self.client_tools)
        shares = self.shares_state and all(tool.name != STATE_TOOL.name for tool in tools)
        return (*tools, STATE_TOOL) if shares else tools

    @property
    def changed_at(self) -> datetime:
        """When the run ended, otherwise began or was created."""
        return self.finished_at or self.started_at or self.created_at

    @property
    def took_s(self) -> float:
        """How long it took, waits for people included, in seconds; of one that has not ended, its
        active time."""
        if self.started_at is not None and self.finished_at is not None:
            return (self.finished_at - self.started_at).total_seconds()
        return self.active_s

    @property
    def is_suspect(self) -> bool:
        """Whether the run may be what ends its workers."""
        return self.lapses >= SUSPECT_AFTER

    @property
    def is_lost_too_often(self) -> bool:
        return self.lapses >= MAX_LEASE_EXPIRATIONS

    def suspended(self, pending: tuple[ToolUse, ...], *, output: str | None = None) -> "Run":
        """The run waits for `pending`; `output` is the text of the reply with these calls."""
        return with_changes(self, status=self._next(RunStatus.REQUIRES_ACTION), pending=pending, output=output)

    def resumed(self) -> "Run":
        """All pending calls are settled; the run is queued."""
        if self.status is not RunStatus.REQUIRES_ACTION:
            raise conflict("run_not_waiting", f"Run {self.id} is {self.status}, not requires_action.", run_id=self.id)
        return with_changes(self, status=self._next(RunStatus.QUEUED), pending=())

    def ended(
        self,
        status: RunStatus,
        *,
        at: datetime,
        output: str | None = None,
        output_json: JsonObject | None = None,
        error: RunError | None = None,
        incomplete_reason: IncompleteReason | None = None,
    ) -> "Run":
        if not status.is_terminal:
            raise ValueError(f"{status} does not end a run")
        if (status is RunStatus.FAILED) != (error is not None):
            raise ValueError("a run has an error exactly when it failed")
        if (status is RunStatus.INCOMPLETE) != (incomplete_reason is not None):
            raise ValueError("a run has an incomplete_reason exactly when it is incomplete")
        return with_changes(
            self,
            status=self._next(status),
            output=output,
            output_json=output_json,
            error=error,
            incomplete_reason=incomplete_reason,
            pending=(),
            finished_at=at,
        )

    def advanced(
        self,
        *,
        usage: Usage,
        active_s: float | None = None,
        last_seq: int | None = None,
        overview: str | None = None,
    ) -> "Run":
        """Progress of a claimed run. None leaves a value unchanged. Progress resets `lapses`."""
        return with_changes(
            self,
            usage=usage,
            lapses=0,
            last_seq=self.last_seq if last_seq is None else last_seq,
            active_s=self.active_s if active_s is None else active_s,
            overview=self.overview if overview is None else overview,
        )

    def _next(self, status: RunStatus) -> RunStatus:
        """The status, if the transition is legal."""
        if status not in _TRANSITIONS.get(self.status, frozenset()):
            raise self._illegal(status)
        return status

    def _illegal(self, status: RunStatus) -> ServiceError:
        return conflict(
            "run_transition_illegal",
            f"Run {self.id} is {self.status} and cannot become {status}.",
            run_id=self.id,
            status=self.status.value,
        )
