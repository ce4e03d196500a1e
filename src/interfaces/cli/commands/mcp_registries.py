"""`dragoman mcp search` and `dragoman mcp add-from`: servers of the configured MCP registries."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.commands.mcp_authorize import values_and_secrets
from interfaces.cli.failures import BadUsage, CommandFailure
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.mcp_registries.views import (
    McpRegistryView,
    RegistryEntryView,
    RegistryOptionView,
    RegistryVersionView,
)
from interfaces.http.mcp_servers.views import McpServerView

Registry = Annotated[
    str | None, typer.Option("--registry", metavar="NAME", help="The registry. Default: the first that is configured.")
]
_SHOWN = 60


def search_registry(
    context: typer.Context,
    words: Annotated[str, typer.Argument(metavar="TEXT", help="A part of the name.")] = "",
    registry: Registry = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100, help="Most entries to show.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Search an MCP registry that DRAGOMAN_MCP_REGISTRIES names."""
    session = session_of(context)

    async def search(api: ServiceApi) -> None:
        name = registry or await _first(api)
        query: dict[str, str | int] = {"search": words, "limit": limit}
        page = await api.get(path_to("mcp-registries", name, "servers"), query)
        if as_json:
            session.terminal.json(page)
            return
        session.terminal.table(
            ("name", "version", "kinds", "description"),
            [
                (
                    entry["name"],
                    entry["version"],
                    ", ".join(dict.fromkeys(option["kind"].value for option in entry["options"])) or "not usable here",
                    entry["description"][:_SHOWN],
                )
                for entry in entries_of(RegistryEntryView, page)
            ],
            empty=f"The registry {name} has no such servers.",
        )

    session.perform(search)


def add_from_registry(
    context: typer.Context,
    *,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name in the registry, and @VERSION for another one.")
    ],
    slug: Annotated[
        str | None, typer.Option("--slug", metavar="SLUG", help="Its slug here. Default: the end of its name.")
    ] = None,
    registry: Registry = None,
    option: Annotated[
        int, typer.Option("--option", metavar="N", min=0, help="Which of the entry's options, from 0.")
    ] = 0,
    value: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="INPUT=VALUE", help="An input, such as env.REGION=eu. Repeatable."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option("--set-secret", metavar="INPUT=SECRET", help="An input with the value of a named secret."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Register a server as an MCP registry describes it. Nothing is installed or started. It says
    what the entry sets, and without its required inputs which there are."""
    session = session_of(context)
    entry_name, _, version = name.partition("@")
    namespace, slash, rest = entry_name.partition("/")
    if not slash:
        raise BadUsage("A name in a registry has two parts, such as com.example/tickets.")
    body: JsonObject = {"option": option, **values_and_secrets("inputs", "--set", value, secret)}
    body |= {field: given for field, given in (("version", version), ("slug", slug)) if given}

    async def add(api: ServiceApi) -> None:
        path = path_to("mcp-registries", registry or await _first(api), "servers", namespace, rest)
        entry = read_as(RegistryEntryView, await api.get(path, {"version": version} if version else None))
        chosen = entry["options"][option] if option < len(entry["options"]) else None
        for remark in () if chosen is None else (*chosen["remarks"], *_set(chosen, body), *_missing(chosen, body)):
            session.terminal.note(remark)
        document = await api.post(path, body)
        server = read_as(McpServerView, document)
        following = "See whether it works: dragoman mcp test" if server["url"] else "Install it: dragoman mcp install"
        session.terminal.note(f"Registered {server['slug']} ({server['id']}). {following} {server['slug']}")
        if as_json:
            session.terminal.json(document)

    session.perform(add, creates=True)


def _set(option: RegistryOptionView, body: JsonObject) -> list[str]:
    """What the publisher chose: what the entry sets, and defaults that are not overridden."""
    given = body.get("inputs") or {}
    assert isinstance(given, dict)
    defaults = {
        one["name"]: one["default"]
        for one in option["inputs"]
        if one["default"] is not None and one["name"] not in given
    }
    return [
        *(f"It sets {one['name']}: {one['value']}" for one in option["settings"]),
        *(f"It sets {name}, unless you do: {value}" for name, value in defaults.items()),
    ]


def _missing(option: RegistryOptionView, body: JsonObject) -> list[str]:
    """The required inputs that are not given."""
    given = body.get("inputs") or {}
    assert isinstance(given, dict)
    return [
        f"It needs {one['name']}{' (a secret)' if one['is_secret'] else ''}: {one['description']}".rstrip(": ")
        for one in option["inputs"]
        if one["is_required"] and one["default"] is None and one["name"] not in given
    ]


async def newer_version(api: ServiceApi, server: McpServerView) -> str | None:
    """The latest version in the server's registry, if it is another one and the caller may know."""
    if server["registry_entry"] is None:
        return None
    try:
        document = await api.get(path_to("mcp-servers", server["id"], "newer-version"))
    except CommandFailure:
        return None
    return read_as(RegistryVersionView, document)["newer_version"]


async def _first(api: ServiceApi) -> str:
    names = entries_of(McpRegistryView, await api.get(path_to("mcp-registries")))
    if not names:
        raise CommandFailure("No MCP registry is configured: set DRAGOMAN_MCP_REGISTRIES=NAME=URL for the service.")
    return names[0]["name"]
