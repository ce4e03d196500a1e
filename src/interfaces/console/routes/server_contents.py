"""MCP servers: resources and prompts, read under the policy of an agent."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery

from application.gateway.contents.read_server_content import ReadServerContent, ReadServerContentCommand
from domain.errors import not_found
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.server_contents import Content, ServerContentsPages, arguments_of, filled


@get("/servers/{slug:str}/contents")
async def show_server_contents(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    server_contents: NamedDependency[ServerContentsPages],
    agent: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "server_contents.html", await server_contents.of(request.principal, slug, agent))


@post("/servers/{slug:str}/resources/read", status_code=200)
async def read_server_resource(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    read_server_content: NamedDependency[ReadServerContent],
) -> Response[str]:
    """Read a resource, also one of a template."""
    uri = filled(data.get("uri", ""), data) if data.get("template") else data.get("uri", "").strip()
    result = await read_server_content.execute(
        ReadServerContentCommand(principal=request.principal, server=slug, agent=data.get("agent", ""), uri=uri)
    )
    contents = result.get("contents")
    return pages.show(request, "parts/content_read.html", {"name": uri, "result": result, "texts": _texts(contents)})


@post("/servers/{slug:str}/prompts/get", status_code=200)
async def get_server_prompt(
    *,
    request: ConsoleRequest,
    slug: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    read_server_content: NamedDependency[ReadServerContent],
    server_contents: NamedDependency[ServerContentsPages],
) -> Response[str]:
    """Get a prompt with the arguments of its form, which are named as the server lists them."""
    listed = await server_contents.of(request.principal, slug, data.get("agent", ""))
    name = data.get("name", "")
    result = await read_server_content.execute(
        ReadServerContentCommand(
            principal=request.principal,
            server=slug,
            agent=data.get("agent", ""),
            name=name,
            arguments=arguments_of(_prompt(listed["prompts"], name), data),
        )
    )
    messages = result.get("messages")
    contents = (
        [each.get("content") for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    )
    return pages.show(request, "parts/content_read.html", {"name": name, "result": result, "texts": _texts(contents)})


def _prompt(listed: object, name: str) -> Content:
    """Raises NOT_FOUND."""
    for each in listed if isinstance(listed, tuple) else ():
        if isinstance(each, Content) and each.key == name:
            return each
    raise not_found("prompt", name)


def _texts(contents: object) -> list[str]:
    """The texts of the contents, as people read them."""
    found = [each.get("text") for each in contents if isinstance(each, dict)] if isinstance(contents, list) else []
    return [each for each in found if isinstance(each, str)]
