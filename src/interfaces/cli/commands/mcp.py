"""`dragoman mcp`: MCP servers."""

from pathlib import Path
from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.arguments import (
    AuthOption,
    AuthoritiesOption,
    ClientCertificateOption,
    ClientKeyOption,
    CredentialsOption,
    OAuthOption,
    ServerArgument,
)
from interfaces.cli.commands.mcp_authorize import auth_of, authorize_server, values_and_secrets
from interfaces.cli.commands.mcp_connection import connect_server, disconnect_server, refresh_server
from interfaces.cli.commands.mcp_contents import prompts, resources
from interfaces.cli.commands.mcp_declared import tools_in
from interfaces.cli.commands.mcp_fields import installed_from, rate_limit_of, reaching, start, tls_of
from interfaces.cli.commands.mcp_install import (
    disable_server,
    enable_server,
    import_servers,
    install_server,
    uninstall_server,
)
from interfaces.cli.commands.mcp_registries import add_from_registry, newer_version, search_registry
from interfaces.cli.commands.mcp_tools import approve_tools, list_tools, reject_tools
from interfaces.cli.failures import FAILED, ApiProblem, BadUsage
from interfaces.cli.field_values import field_values
from interfaces.cli.mcp_view import reached_by, show_outcome, show_server
from interfaces.cli.session import JsonFlag, session_of
from interfaces.http.mcp_servers.views import McpServerView, ServerStatusView, TestResultView

mcp_app = typer.Typer(
    help="Manage MCP servers.", no_args_is_help=True, epilog="Example: dragoman mcp add time -- mcp-server-time"
)


@mcp_app.command(
    "add",
    epilog="Examples: dragoman mcp add time --kind python --package mcp-server-time; "
    "dragoman mcp add files --kind npm --package @modelcontextprotocol/server-filesystem -- /srv/files; "
    "dragoman mcp add git --kind oci --package mcp/git; "
    "dragoman mcp add mine --env TZ=UTC -- python -m my_server; "
    "dragoman mcp add tickets --url https://mcp.example.com/mcp --bearer-secret TICKETS_TOKEN; "
    "dragoman mcp add lookup --url https://connector.example.com/rpc --declared-tools tools.yaml",
)
def add_server(
    context: typer.Context,
    *,
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Its name: [a-z0-9][a-z0-9-]{0,31}.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Its command with arguments, after --; with --package or --path, only the arguments.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="npm, python, oci (a container image), custom, http, sse or a2a (a remote agent). Default: custom with a command or path, http with a URL.",
        ),
    ] = None,
    package: Annotated[
        str | None,
        typer.Option(
            "--package",
            metavar="PACKAGE",
            help="What an npm or python server is installed from: a name, or a .tgz, wheel or sdist file. For python, "
            "further requirements may follow after spaces: 'mcp-server-sqlite mcp<2'. For oci, the image.",
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="VERSION",
            help="Version of the package; tag or digest of the image. Default: the newest.",
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="PATH", help="Executable or directory that a custom server is a copy of."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option("--command", metavar="NAME", help="A command of the package, or of the copied directory."),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="URL of a remote server.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="Sent to a remote server. Repeatable.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="Environment variable of its process. Repeatable."),
    ] = None,
    header_secret: Annotated[
        list[str] | None,
        typer.Option("--header-secret", metavar="NAME=SECRET", help="A header with the value of a named secret."),
    ] = None,
    env_secret: Annotated[
        list[str] | None,
        typer.Option(
            "--env-secret",
            metavar="NAME=SECRET",
            help="An environment variable with the value of a named secret. Repeatable.",
        ),
    ] = None,
    bearer_secret: Annotated[
        str | None, typer.Option("--bearer-secret", metavar="SECRET", help="The named secret that is its bearer token.")
    ] = None,
    oauth: OAuthOption = False,
    auth: AuthOption = None,
    client_certificate: ClientCertificateOption = None,
    client_key_secret: ClientKeyOption = None,
    ca: AuthoritiesOption = None,
    credentials: CredentialsOption = None,
    network: Annotated[
        str | None,
        typer.Option("--network", metavar="MODE", help="What its process reaches: none, allowlist or full (default)."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="A host of its allowlist: api.example.com, *.example.com or host:8443. Repeatable; implies --network "
            "allowlist.",
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="NAME", help="Use only this tool of the server, or a glob. Repeatable."),
    ] = None,
    declared_tools: Annotated[
        Path | None,
        typer.Option(
            "--declared-tools",
            metavar="FILE",
            help="For a server that answers only tools/call: the definitions of its tools, as YAML or JSON.",
        ),
    ] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Trust its hints and instructions.")] = False,
    isolation: Annotated[
        str | None, typer.Option("--isolation", metavar="MODE", help="Scope of a connection: shared, thread or run.")
    ] = None,
    elicitation: Annotated[
        str | None,
        typer.Option("--elicitation", metavar="MODE", help="On requests for input during a call: decline or ask."),
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            "--sampling", metavar="MODE", help="On requests for a model completion: decline or pass (gateway)."
        ),
    ] = None,
    roots: Annotated[
        str | None,
        typer.Option("--roots", metavar="MODE", help="On requests for the client's roots: decline or pass (gateway)."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            "--on-connection-loss",
            metavar="STRATEGY",
            help="While the shared connection is lost: mark_unhealthy keeps its tools, unregister leaves them out. Needs "
            "isolation shared.",
        ),
    ] = None,
    rate_limit: Annotated[
        str | None,
        typer.Option(
            "--rate-limit",
            metavar="CALLS/SECONDS",
            help="Rate limit of calls; 60/60 is once a second on average.",
        ),
    ] = None,
    team: Annotated[
        str | None,
        typer.Option("--team", metavar="GROUP", help="Group that it belongs to; others neither see nor use it."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Register an MCP server. It is a package or a copy to install, a command to run in place, or a
    URL. Nothing is installed or started."""
    session = session_of(context)
    if package is not None and kind is None:
        raise BadUsage("--package needs --kind npm, python or oci.")
    if not command and package is None and path is None and url is None:
        raise BadUsage("Give one of --package PACKAGE, --path PATH, --url URL, or -- COMMAND ARGS….")
    body: JsonObject = {"slug": slug, "kind": kind or ("http" if url is not None else "custom"), "trusted": trusted}
    if package is not None or path is not None:
        body |= installed_from(package, version, path)
        body |= start(program, command or [])
    elif program is not None or version is not None:
        raise BadUsage("--command and --version require --package or --path; give other commands after --.")
    elif command:
        body |= start(command[0], command[1:])
    if url is not None:
        body["url"] = url
    body |= values_and_secrets("headers", "--header", header, header_secret)
    body |= values_and_secrets("env", "--env", env, env_secret)
    body |= auth_of(bearer_secret, auth, oauth=oauth)
    body |= tls_of(client_certificate, client_key_secret, ca)
    body |= reaching(network, host)
    given: dict[str, JsonValue] = {
        "tools": [*tool] if tool else None,
        "declared_tools": None if declared_tools is None else tools_in(declared_tools),
        "credentials": credentials,
        "isolation": isolation,
        "elicitation": elicitation,
        "sampling": sampling,
        "roots": roots,
        "on_connection_loss": loss,
        "team": team,
    }
    body |= {name: value for name, value in given.items() if value is not None}
    if rate_limit is not None:
        body["rate_limit"] = rate_limit_of(rate_limit)

    async def add(api: ServiceApi) -> None:
        document = await api.post(path_to("mcp-servers"), body)
        server = read_as(McpServerView, document)
        is_installed = package is not None or path is not None
        following = "Install it: dragoman mcp install" if is_installed else "See whether it works: dragoman mcp test"
        session.terminal.note(f"Registered {server['slug']} ({server['id']}). {following} {server['slug']}")
        if as_json:
            session.terminal.json(document)

    session.perform(add, creates=True)


@mcp_app.command("list", epilog="Example: dragoman mcp list --json")
def list_servers(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List MCP servers with their states."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        page = await listed(api, path_to("mcp-servers"))
        if as_json:
            session.terminal.json(page)
            return
        session.terminal.table(
            ("slug", "state", "kind", "source", "isolation", "trusted", "id"),
            [
                (
                    server["slug"],
                    await _state(api, server),
                    server["kind"],
                    reached_by(server),
                    server["isolation"],
                    "yes" if server["trusted"] else "no",
                    server["id"],
                )
                for server in entries_of(McpServerView, page)
            ],
            empty="There are no MCP servers. Register one with `dragoman mcp add`.",
        )

    session.perform(show)


async def _state(api: ServiceApi, server: McpServerView) -> str:
    try:
        document = await api.get(path_to("mcp-servers", server["id"], "status"))
    except ApiProblem:
        return ""  # deleted since it was listed
    return read_as(ServerStatusView, document)["state"].replace("_", " ")


@mcp_app.command("show", epilog="Example: dragoman mcp show time")
def show_one(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Show a server and the state of its connections. Values of env and headers stay hidden."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("mcp-servers", slug))
        status = await api.get(path_to("mcp-servers", slug, "status"))
        if as_json:
            session.terminal.json({**document, "status": status})
            return
        server, state = read_as(McpServerView, document), read_as(ServerStatusView, status)
        show_server(session.terminal, server, state, newer=await newer_version(api, server))

    session.perform(show)


@mcp_app.command("test", epilog="Example: dragoman mcp test time")
def run_test(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Start or contact a server and list its tools. Exit code 1 on failure."""
    session = session_of(context)

    async def test(api: ServiceApi) -> int:
        document = await api.post(path_to("mcp-servers", slug, "test"))
        outcome = read_as(TestResultView, document)
        if as_json:
            session.terminal.json(document)
        else:
            show_outcome(session.terminal, slug, outcome)
        return 0 if outcome["ok"] else FAILED

    session.perform(test)


@mcp_app.command("logs", epilog="Example: dragoman mcp logs time")
def show_logs(context: typer.Context, slug: ServerArgument, as_json: JsonFlag = False) -> None:
    """Print the end of a server's stderr, and failed calls. Remote servers have no stderr."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("mcp-servers", slug, "logs"))
        text = str(document.get("text", ""))
        if as_json:
            session.terminal.json(document)
        elif text:
            session.terminal.line(text.rstrip("\n"))
        else:
            session.terminal.note(f"{slug} has no output and no failed calls since the service started.")

    session.perform(show)


def delete_server(context: typer.Context, slug: ServerArgument) -> None:
    """Delete a server. Its tools become unavailable to agents that list it."""
    session_of(context).delete(path_to("mcp-servers", slug), f"Deleted {slug}.")


mcp_app.command("delete", epilog="Example: dragoman mcp delete time")(delete_server)
mcp_app.command("remove", epilog="Example: dragoman mcp remove time", hidden=True)(delete_server)


@mcp_app.command(
    "update",
    epilog="Examples: dragoman mcp update time timeout_s=60; dragoman mcp update tickets enabled=false trusted=true",
)
def update_server(
    context: typer.Context,
    slug: ServerArgument,
    fields: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE...", help="Fields as in the API; a value is JSON, else text.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Change fields of a server. Connections of the previous version close after their calls."""
    session = session_of(context)
    changes = field_values(fields, texts=("version", "package", "command", "url"), may_be_null=("version",))
    session.show(
        McpServerView,
        lambda api: api.patch(path_to("mcp-servers", slug), changes),
        lambda server: session.terminal.note(
            f"Changed {server['slug']}. See whether it works: dragoman mcp test {server['slug']}"
        ),
        as_json=as_json,
    )


mcp_app.command("tools", epilog="Example: dragoman mcp tools time --refresh")(list_tools)
_READ = "dragoman mcp resources files file:///notes.txt --agent guide"
mcp_app.command("resources", epilog=f"Examples: dragoman mcp resources files; {_READ}")(resources)
_GET = "dragoman mcp prompts files review language=Python --agent guide"
mcp_app.command("prompts", epilog=f"Examples: dragoman mcp prompts files; {_GET}")(prompts)
mcp_app.command(
    "approve",
    epilog="Examples: dragoman mcp approve time; dragoman mcp approve time now; dragoman mcp approve time --all",
)(approve_tools)
mcp_app.command(
    "reject",
    epilog='Examples: dragoman mcp reject time now --reason "It asks for secrets."; dragoman mcp reject time --all',
)(reject_tools)
mcp_app.command("authorize", epilog="Example: dragoman mcp authorize tickets")(authorize_server)
mcp_app.command("connect", epilog="Example: dragoman mcp connect time")(connect_server)
mcp_app.command("disconnect", epilog="Example: dragoman mcp disconnect time")(disconnect_server)
mcp_app.command("refresh", epilog="Example: dragoman mcp refresh time")(refresh_server)
mcp_app.command("search", epilog="Example: dragoman mcp search tickets")(search_registry)
mcp_app.command(
    "add-from",
    epilog="Examples: dragoman mcp add-from com.example/tickets --set-secret headers.Authorization=TICKETS_TOKEN; "
    "dragoman mcp add-from com.example/files@1.2.0 --slug files --set args.0=/srv/files",
)(add_from_registry)
mcp_app.command("install", epilog="Example: dragoman mcp install time")(install_server)
mcp_app.command("uninstall", epilog="Example: dragoman mcp uninstall time")(uninstall_server)
mcp_app.command("enable", epilog="Example: dragoman mcp enable time")(enable_server)
mcp_app.command("disable", epilog="Example: dragoman mcp disable time")(disable_server)
mcp_app.command("import", epilog="Example: dragoman mcp import claude_desktop_config.json")(import_servers)
