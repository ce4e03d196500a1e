"""Body of the gateway session routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from application.gateway.sessions.open_session import DEFAULT_TTL_S, MAX_TTL_S
from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from domain.workflows.graph import MAX_NODES
from interfaces.http.bodies import Body, Name


class OpenGatewaySessionBody(Body):
    """A session. Exactly one of `agent_id`, `run_id` and `workflow_run_id` selects its tools."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"agent_id": "researcher", "ttl_s": 3600},
        {"workflow_run_id": "wfr_0123456789abcdef", "node_ids": ["weather"]},
    )

    agent_id: Name | None = Field(default=None, description="Id or name of an agent: all its tools.")
    run_id: Name | None = Field(default=None, description="An unfinished run: its tools until it ends.")
    workflow_run_id: Name | None = Field(
        default=None, description="An unfinished workflow run: tools of its nodes until it ends."
    )
    node_ids: list[Name] | None = Field(
        default=None,
        max_length=MAX_NODES,
        description="With `workflow_run_id`: tool nodes wired to one agent, under its policies; or an agent "
        "node, for all tools wired to it. `[]` selects nothing.",
    )
    ttl_s: int = Field(default=DEFAULT_TTL_S, ge=1, le=MAX_TTL_S, description="Validity of the token in seconds.")
    names: Annotated[ToolNames, Field(strict=False)] = Field(
        default=ToolNames.NAMESPACED,
        description="`original`: tools have the names that their server gives them; for agents with exactly one server.",
    )
