"""Task ids: sealed, so that any process can read them and clients cannot forge them."""

import json
from datetime import datetime

from application.tools.ports import Box
from domain.errors import ServiceError, invalid
from domain.gateway.session import GatewaySession
from domain.gateway.task import TaskName
from domain.ids import ApprovalId, RunId, ToolCallId

_PURPOSE = "gateway task"
"""Other values that this box encrypts are rejected as tasks."""


class TaskIds:
    """A task is known only to its session; to other sessions it is unknown."""

    def __init__(self, *, box: Box) -> None:
        self._box = box

    def sealed(self, name: TaskName) -> str:
        told = {
            "purpose": _PURPOSE,
            "session": name.session_id,
            "tool": name.tool,
            "call": name.call_id,
            "at": name.created_at.isoformat(),
            "run": name.run_id,
            "approval": name.approval_id,
        }
        return self._box.encrypt(json.dumps(told).encode()).decode("ascii")

    def opened(self, task_id: str, session: GatewaySession) -> TaskName:
        """The content of the id. Raises INVALID `task_not_found`."""
        try:
            told = json.loads(self._box.decrypt(task_id.encode()))
        except (ServiceError, ValueError) as exc:
            raise task_not_found() from exc
        if not isinstance(told, dict) or (told.get("purpose"), told.get("session")) != (_PURPOSE, session.id):
            raise task_not_found()
        return TaskName(
            session_id=session.id,
            tool=str(told["tool"]),
            call_id=ToolCallId(str(told["call"])),
            created_at=datetime.fromisoformat(str(told["at"])),
            run_id=None if told["run"] is None else RunId(str(told["run"])),
            approval_id=None if told["approval"] is None else ApprovalId(str(told["approval"])),
        )


def task_not_found() -> ServiceError:
    return invalid("task_not_found", "There is no such task.")
