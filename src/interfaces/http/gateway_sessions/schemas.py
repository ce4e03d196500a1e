"""Body of the gateway session routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from application.gateway.sessions.open_session import DEFAULT_TTL_S, MAX_TTL_S
from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from domain.workflows.graph import MAX_NODES
from interfaces.http.bodies import Body, Name


class OpenGatewaySessionBody(Body):
    """A session: exactly one of `agent_id`, `run_id` and `workflow_run_id` says whose tools its token opens."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"agent_id": "researcher", "ttl_s": 3600},
        {"workflow_run_id": "wfr_0123456789abcdef", "node_ids": ["weather"]},
    )

    agent_id: Name | None = Field(default=None, description="The id or the name of an agent: all of its toolbox.")
    run_id: Name | None = Field(default=None, description="A run that has not ended: its tools, until it has.")
    workflow_run_id: Name | None = Field(
        default=None, description="A workflow run that has not ended: tools of its nodes, until it has."
    )
    node_ids: list[Name] | None = Field(
        default=None,
        max_length=MAX_NODES,
        description="Beside `workflow_run_id`: tool nodes that are wired to one agent, whose policies hold, or the node of an "
        "agent for all that are wired to it; `[]` opens nothing.",
    )
    ttl_s: int = Field(default=DEFAULT_TTL_S, ge=1, le=MAX_TTL_S, description="How long the token is good, in seconds.")
    names: Annotated[ToolNames, Field(strict=False)] = Field(
        default=ToolNames.NAMESPACED,
        description="`original`: tools are called as their server calls them; for agents with exactly one server.",
    )
