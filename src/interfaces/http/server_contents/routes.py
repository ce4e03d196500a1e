"""Routes of an MCP server's resources and prompts, which are read under the policy of an agent."""

from typing import Annotated, ClassVar

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter
from pydantic import Field

from application.gateway.contents.list_server_contents import ListServerContents
from application.gateway.contents.read_server_content import ReadServerContent, ReadServerContentCommand
from domain.json_value import JsonObject
from interfaces.http.bodies import MAX_NAME, Body
from interfaces.http.paths import ServerPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.server_contents.result_views import server_contents_view
from interfaces.http.server_contents.views import ServerContentsView, ServerContentView

TAG = Tag(name="MCP resources and prompts", description="Resources and prompts of MCP servers, under policy.")
_MAX_URI = 8_192
_AgentField = Annotated[str, Field(min_length=1, max_length=MAX_NAME, description="The agent's id or name.")]


class ReadResourceBody(Body):
    """A resource of the server, and the agent under whose policy it is read."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"agent": "guide", "uri": "file:///notes/today.md"},)

    agent: _AgentField
    uri: str = Field(min_length=1, max_length=_MAX_URI, description="URI of the resource, as the server names it.")


class GetPromptBody(Body):
    """A prompt of the server with its arguments, and the agent under whose policy it is read."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"agent": "guide", "name": "review", "arguments": {"language": "Python"}},
    )

    agent: _AgentField
    name: str = Field(min_length=1, max_length=MAX_NAME, description="Name of the prompt, as the server names it.")
    arguments: dict[str, str] = Field(default={}, description="Its arguments: texts by their names.")


@get(
    "/mcp-servers/{server:str}/contents",
    summary="List an MCP server's resources and prompts",
    responses=documented(403, 404, 503),
)
async def list_server_contents(
    request: ApiRequest,
    server: ServerPath,
    list_server_contents: NamedDependency[ListServerContents],
    agent: Annotated[str, QueryParameter(description="The agent's id or name. Its policy applies.")],
) -> ServerContentsView:
    """Requires the role runner. The server is asked in the caller's own gateway session with the
    agent. A list that it does not answer is empty."""
    return server_contents_view(await list_server_contents.execute(request.principal, server, agent))


@post(
    "/mcp-servers/{server:str}/resources/read",
    summary="Read a resource of an MCP server",
    status_code=200,
    responses=documented(403, 404, 409, 413, 503),
)
async def read_server_resource(
    request: ApiRequest,
    server: ServerPath,
    data: JSONBody[ReadResourceBody],
    read_server_content: NamedDependency[ReadServerContent],
) -> ServerContentView:
    """Requires the role runner. For policy, limits and audit it is a call of
    `mcp__SLUG__resources`, as a client of the gateway makes it."""
    command = ReadServerContentCommand(principal=request.principal, server=server, agent=data.agent, uri=data.uri)
    return {"result": await read_server_content.execute(command)}


@post(
    "/mcp-servers/{server:str}/prompts/get",
    summary="Get a prompt of an MCP server",
    status_code=200,
    responses=documented(403, 404, 409, 413, 503),
)
async def get_server_prompt(
    request: ApiRequest,
    server: ServerPath,
    data: JSONBody[GetPromptBody],
    read_server_content: NamedDependency[ReadServerContent],
) -> ServerContentView:
    """Requires the role runner. For policy, limits and audit it is a call of `mcp__SLUG__prompts`,
    as a client of the gateway makes it."""
    command = ReadServerContentCommand(
        principal=request.principal, server=server, agent=data.agent, name=data.name, arguments=data.arguments
    )
    return {"result": await read_server_content.execute(command)}
