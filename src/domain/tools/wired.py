"""Which tools of a workflow run somebody sees: those of the tool nodes that are wired to an agent, and no others."""

from dataclasses import dataclass, field
from datetime import datetime

from domain.ids import OrganizationId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredNodes:
    """Tool nodes of one workflow run, in the order of the edges. None of them is none of its tools, never all."""

    workflow_run_id: WorkflowRunId
    node_ids: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """As it is stored."""
        ids: list[JsonValue] = [*self.node_ids]
        return {"workflow_run_id": self.workflow_run_id, "node_ids": ids}

    @classmethod
    def from_json(cls, stored: JsonObject) -> "WiredNodes":
        """From what `to_json` gave."""
        ids = stored["node_ids"]
        return cls(
            workflow_run_id=WorkflowRunId(str(stored["workflow_run_id"])),
            node_ids=tuple(str(node_id) for node_id in ids) if isinstance(ids, list) else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A tool node of a workflow run that is ready. `sealed` is what its tools are and what calls of them take, values of
    credentials among it, encrypted. It is there for as long as the run has not ended."""

    organization_id: OrganizationId
    workflow_run_id: WorkflowRunId
    node_id: str
    kind: str
    sealed: bytes = field(repr=False)
    registered_at: datetime
