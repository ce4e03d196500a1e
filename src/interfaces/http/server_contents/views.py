"""Resources and prompts of an MCP server as JSON: the objects of the protocol."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from application.gateway.contents.list_server_contents import ServerContents


class ServerContentsView(TypedDict):
    """What a server lists for an agent, under its own names. The entries are objects of MCP."""

    resources: Annotated[list[Mapping[str, object]], "Its resources: `uri`, `name`, `title`, `mimeType` and others."]
    resource_templates: Annotated[list[Mapping[str, object]], "Templates of URIs: `uriTemplate`, `name` and others."]
    prompts: Annotated[list[Mapping[str, object]], "Its prompts: `name`, `arguments` and others."]


class ServerContentView(TypedDict):
    """What the server answered."""

    result: Annotated[
        Mapping[str, object],
        "The result of MCP: `contents` of a resource, `messages` of a prompt. URIs are those that clients of the gateway see.",
    ]


def server_contents_view(found: ServerContents) -> ServerContentsView:
    return {
        "resources": [*found.resources],
        "resource_templates": [*found.templates],
        "prompts": [*found.prompts],
    }
