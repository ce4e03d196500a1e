"""Data of a page of an MCP server's resources and prompts: what it lists, with forms for templates
and arguments."""

import re
from dataclasses import dataclass
from urllib.parse import quote

from application.agents.queries import ListAgents
from application.gateway.contents.list_server_contents import ListServerContents
from application.mcp.queries import GetMcpServer
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject, JsonValue
from interfaces.console.whole_lists import all_of

MOST_SHOWN = 200
_VARIABLE = re.compile(r"\{([A-Za-z0-9_.]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A field of a form. The form's names are generated: names from a server appear only as escaped
    text."""

    name: str
    key: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A resource (`key` is its URI), a template, or a prompt (`key` is its name). `title` and
    `about` are for people."""

    key: str
    title: str
    about: str
    media_type: str
    arguments: tuple[Argument, ...] = ()


class ServerContentsPages:
    """Rules:
    - Contents are listed under the policy of an enabled agent that has the server.
    - A server that cannot be asked is said, and the page stays.
    """

    def __init__(
        self, *, get_mcp_server: GetMcpServer, list_agents: ListAgents, list_server_contents: ListServerContents
    ) -> None:
        self._get_server = get_mcp_server
        self._list_agents = list_agents
        self._contents = list_server_contents

    async def of(self, principal: Principal, slug: str, agent: str) -> dict[str, object]:
        """`agent` is the id of the one chosen; others take the first. Raises NOT_FOUND."""
        server = await self._get_server.execute(principal, slug)
        offered = await self._offered(principal, server.config.slug)
        chosen = next((each for each in offered if each.id == agent), offered[0] if offered else None)
        may_run = principal.may(Permission.RUNS_START)
        context: dict[str, object] = {
            "slug": server.config.slug,
            "offered": offered,
            "chosen": chosen,
            "may_run": may_run,
            "problem": "",
            "most": MOST_SHOWN,
            "resources": (),
            "templates": (),
            "prompts": (),
        }
        if chosen is None or not may_run:
            return context
        try:
            found = await self._contents.execute(principal, server.id, chosen.id)
        except ServiceError as error:
            if error.kind not in (ErrorKind.FORBIDDEN, ErrorKind.UNAVAILABLE):
                raise
            return context | {"problem": error.detail}
        return context | {
            "resources": tuple(_content(each, "uri") for each in found.resources),
            "templates": tuple(_content(each, "uriTemplate") for each in found.templates),
            "prompts": tuple(_content(each, "name") for each in found.prompts),
        }

    async def _offered(self, principal: Principal, slug: str) -> list[Agent]:
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        having = (each for each in agents if slug in each.config.mcp_servers and each.config.enabled)
        return sorted(having, key=lambda each: each.config.name)


def filled(template: str, form: dict[str, str]) -> str:
    """The URI of a template with the values of its form. What is no plain `{name}` stays as it is
    (RFC 6570, level 1)."""
    names = {name: f"argument-{at}" for at, name in enumerate(_variables(template))}
    return _VARIABLE.sub(lambda found: quote(form.get(names[found[1]], ""), safe=""), template)


def arguments_of(prompt: Content, form: dict[str, str]) -> dict[str, str]:
    """The arguments of a prompt from its form, without empty ones that are optional."""
    return {each.key: form.get(each.name, "") for each in prompt.arguments if each.required or form.get(each.name, "")}


def _content(entry: JsonObject, key: str) -> Content:
    name = str(entry[key])
    title = entry.get("title") or entry.get("name") or name
    arguments = _arguments(entry.get("arguments")) if key == "name" else ()
    if key == "uriTemplate":
        arguments = tuple(
            Argument(name=f"argument-{at}", key=each, description="", required=True)
            for at, each in enumerate(_variables(name))
        )
    return Content(
        key=name,
        title=str(title),
        about=str(entry.get("description") or ""),
        media_type=str(entry.get("mimeType") or ""),
        arguments=arguments,
    )


def _arguments(listed: JsonValue) -> tuple[Argument, ...]:
    found = [each for each in listed if isinstance(each, dict) and each.get("name")] if isinstance(listed, list) else []
    return tuple(
        Argument(
            name=f"argument-{at}",
            key=str(each["name"]),
            description=str(each.get("description") or ""),
            required=each.get("required") is True,
        )
        for at, each in enumerate(found)
    )


def _variables(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_VARIABLE.findall(template)))
