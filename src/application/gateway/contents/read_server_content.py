"""ReadServerContent: a resource or prompt of one server for a person, under the policy of an
agent."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.gateway.contents.content_names import exposed_uri
from application.gateway.contents.read_content import ReadGatewayContent, ReadGatewayContentCommand
from application.gateway.sessions.gateway_access import GatewayAccess
from application.mcp.contents import ContentMethod
from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.tools.names import model_facing_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadServerContentCommand:
    """A resource by its `uri`, or a prompt by its `name` with its arguments, as the server names
    them."""

    principal: Principal
    server: str
    agent: str
    uri: str | None = None
    name: str | None = None
    arguments: Mapping[str, str] | None = None


class ReadServerContent:
    """Rules:
    - Requires `runner`. The request belongs to the caller's own gateway session with the agent: the
      agent's policy, its limits, the ledger, the audit trail and the canary rules apply.
    - The result has the URIs that clients of the gateway see.

    Raises: NOT_FOUND, what opening the session raises, and what ReadGatewayContent raises.
    """

    def __init__(self, *, access: GatewayAccess, servers: McpServerStore, reading: ReadGatewayContent) -> None:
        self._access = access
        self._servers = servers
        self._reading = reading

    async def execute(self, command: ReadServerContentCommand) -> Mapping[str, object]:
        """The result as the protocol has it."""
        principal = command.principal
        principal.require(Permission.RUNS_START)
        found = await existing_server(self._servers, principal, command.server)
        session = await self._access.of_principal(principal, command.agent)
        slug = found.config.slug
        if command.uri is not None:
            method, params = ContentMethod.READ_RESOURCE, _params(uri=exposed_uri(command.uri, slug))
        else:
            method = ContentMethod.GET_PROMPT
            params = _params(name=model_facing_name(slug, command.name or ""), arguments={**(command.arguments or {})})
        return await self._reading.execute(ReadGatewayContentCommand(session=session, method=method, params=params))


def _params(**params: str | JsonObject) -> JsonObject:
    return {**params}
