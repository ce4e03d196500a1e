"""State that a run shares with its front end: what the front end sent, at last, and the patches
that the agent has made since."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from domain.json_patch import PatchFault, patched
from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run
from domain.tools.state_tool import MAX_STATE_BYTES, UPDATE_STATE


@dataclass(slots=True)
class SharedState:
    """Reads the events of a run from the first to `read_to`. Patches apply in the order in which
    their calls were executed, so that every reader has the same state. A front end that resumes the
    run may send another state: `is_replaced`."""

    value: JsonValue
    read_to: int = 0
    is_replaced: bool = False
    _patches: dict[str, list[JsonObject]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> "SharedState":
        return cls((run.client_request or {}).get("state"))

    def read(self, event: RunEvent) -> Sequence[JsonObject] | None:
        """The patch that the event applies, if it does. An event that was read is not read
        again."""
        if event.seq <= self.read_to:
            return None
        data, self.read_to = event.data, event.seq
        if event.type is RunEventType.RUN_RESUMED:
            return self._resumed(cast(JsonObject, data.get("client_request", {})))
        if event.type not in (RunEventType.TOOL_STARTED, RunEventType.TOOL_EXECUTED) or data["name"] != UPDATE_STATE:
            return None
        call_id = str(data["tool_call_id"])
        if event.type is RunEventType.TOOL_STARTED:
            self._patches[call_id] = cast("list[JsonObject]", cast(JsonObject, data["params"]).get("patch") or [])
            return None
        patch = self._patches.pop(call_id, None)
        if patch is None:
            return None
        try:
            self.value = self.after(patch)
        except PatchFault:  # a tool of another kind with this name
            return None
        return patch

    def _resumed(self, request: JsonObject) -> Sequence[JsonObject] | None:
        if "state" not in request:
            return None
        self.value, self.is_replaced = request["state"], True
        return [{"op": "replace", "path": "", "value": self.value}]

    def after(self, patch: Sequence[JsonObject]) -> JsonValue:
        """The state with the patch. Raises PatchFault."""
        return patched(self.value, patch, max_bytes=MAX_STATE_BYTES)
