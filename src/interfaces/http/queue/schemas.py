"""Bodies of requests to the queue."""

from typing import ClassVar

from pydantic import Field

from application.runs.requeue_runs import RequeueRunsCommand
from domain.identity.api_key import Principal
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name


class RequeueRunsBody(Body):
    """The runs to take from their workers."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"idle_s": 900}, {"idle_s": 900, "agent_id": "repository-guide"})

    idle_s: float = Field(ge=60, le=86_400, description="Only runs without a new event for so many seconds.")
    agent_id: Name | None = Field(default=None, description="Only runs of this agent: its id or name.")

    def to_command(self, principal: Principal) -> RequeueRunsCommand:
        return RequeueRunsCommand(principal=principal, idle_s=self.idle_s, agent=self.agent_id)
