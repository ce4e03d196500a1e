"""Body of the gateway session routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from application.gateway.open_session import DEFAULT_TTL_S, MAX_TTL_S
from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name


class OpenGatewaySessionBody(Body):
    """A session: exactly one of `agent_id` and `run_id` says whose tools its token opens."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"agent_id": "researcher", "ttl_s": 3600},)

    agent_id: Name | None = Field(default=None, description="The id or the name of an agent: all of its toolbox.")
    run_id: Name | None = Field(default=None, description="A run that has not ended: its tools, until it has.")
    ttl_s: int = Field(default=DEFAULT_TTL_S, ge=1, le=MAX_TTL_S, description="How long the token is good, in seconds.")
    names: Annotated[ToolNames, Field(strict=False)] = Field(
        default=ToolNames.NAMESPACED,
        description="`original`: tools are called as their server calls them; for agents with exactly one server.",
    )
