"""Tool nodes of a workflow run that are wired to an agent."""

from dataclasses import dataclass, field
from datetime import datetime

from domain.ids import OrganizationId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredNodes:
    """Tool nodes of one workflow run, in the order of the edges. An empty list means no tools,
    never all."""

    workflow_run_id: WorkflowRunId
    node_ids: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        ids: list[JsonValue] = [*self.node_ids]
        return {"workflow_run_id": self.workflow_run_id, "node_ids": ids}

    @classmethod
    def from_json(cls, stored: JsonObject) -> "WiredNodes":
        ids = stored["node_ids"]
        return cls(
            workflow_run_id=WorkflowRunId(str(stored["workflow_run_id"])),
            node_ids=tuple(str(node_id) for node_id in ids) if isinstance(ids, list) else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A ready tool node of a workflow run, until the run ends.

    - `sealed` is the encrypted configuration of its tools. It names secrets and holds none.
    - `bound` are the encrypted values that the run bound to it; the tool cannot be called after
      `expires_at`, and they are removed then. None for MCP servers.
    """

    organization_id: OrganizationId
    workflow_run_id: WorkflowRunId
    node_id: str
    kind: str
    sealed: bytes = field(repr=False)
    registered_at: datetime
    bound: bytes | None = field(default=None, repr=False)
    expires_at: datetime | None = None
