"""Resources and prompts of an MCP server as JSON: the objects of the protocol."""

from collections.abc import Mapping
from typing import Annotated, TypedDict


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
