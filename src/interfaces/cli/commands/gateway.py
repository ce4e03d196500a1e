"""`dragoman gateway`: sessions that offer tools to external MCP clients."""

from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AGENTS
from interfaces.cli.failures import BadUsage, CommandFailure, wrong_choice
from interfaces.cli.session import JsonFlag, session_of
from interfaces.client_configs import CLIENTS
from interfaces.http.gateway_sessions.views import GatewaySessionView, OpenedGatewaySessionView

gateway_app = typer.Typer(
    help="Open an agent's tools to MCP clients.",
    no_args_is_help=True,
    epilog="Example: dragoman gateway open --agent researcher",
)


@gateway_app.command("open", epilog="Example: dragoman gateway open --agent researcher --ttl 86400")
def open_session(
    *,
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent with the tools, by name or id.", autocompletion=AGENTS),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Instead: the tools of an unfinished run, until it ends.")
    ] = None,
    workflow_run: Annotated[
        str | None,
        typer.Option(
            "--workflow-run", metavar="ID", help="Instead: tools of an unfinished workflow run, until it ends."
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="NODE",
            help="With --workflow-run: a tool node or an agent node; without nodes there are no tools.",
        ),
    ] = None,
    ttl_s: Annotated[
        int | None, typer.Option("--ttl", metavar="SECONDS", help="Validity of the token, up to 30 days.")
    ] = None,
    original_names: Annotated[
        bool,
        typer.Option("--original-names", help="Use the server's own tool names; for agents with exactly one server."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Open a session and print its token, which is shown only once."""
    if sum(one is not None for one in (agent, run, workflow_run)) != 1:
        raise BadUsage("Give exactly one of --agent NAME, --run ID and --workflow-run ID.")
    if nodes and workflow_run is None:
        raise BadUsage("--node requires --workflow-run ID.")
    session = session_of(context)
    body: JsonObject = {"agent_id": agent} if agent is not None else {"run_id": run}
    if workflow_run is not None:
        body = {"workflow_run_id": workflow_run, "node_ids": [*(nodes or ())]}
    if ttl_s is not None:
        body["ttl_s"] = ttl_s
    if original_names:
        body["names"] = "original"

    def display(new: OpenedGatewaySessionView) -> None:
        where = f" at {new['url']}" if new["url"] is not None else " (run `dragoman serve` for its address)"
        session.terminal.note(
            f"Opened the session {new['id']}{where} until {new['expires_at']}. Its token is shown only once:"
        )
        session.terminal.line(new["token"])

    session.show(
        OpenedGatewaySessionView, lambda api: api.post(path_to("gateway-sessions"), body), display, as_json=as_json
    )


@gateway_app.command("config", epilog="Example: dragoman gateway config --client cursor --agent researcher")
def client_config(
    *,
    context: typer.Context,
    client: Annotated[
        str,
        typer.Option(
            "--client", metavar="NAME", help=f"One of {', '.join(CLIENTS)}.", autocompletion=lambda: [*CLIENTS]
        ),
    ],
    agent: Annotated[
        str,
        typer.Option("--agent", metavar="NAME", help="The agent with the tools, by name or id.", autocompletion=AGENTS),
    ],
    ttl_s: Annotated[int, typer.Option("--ttl", metavar="SECONDS", help="Validity of the token, up to 30 days.")] = 30
    * 86_400,
    tool_search: Annotated[
        bool, typer.Option("--tool-search", help="Let the client search for tools instead of listing all.")
    ] = False,
) -> None:
    """Open a session and print a client's configuration with its token."""
    chosen = CLIENTS.get(client)
    if chosen is None:
        raise wrong_choice("--client", client, CLIENTS)
    session = session_of(context)

    async def configure(api: ServiceApi) -> None:
        document = await api.post(path_to("gateway-sessions"), {"agent_id": agent, "ttl_s": ttl_s})
        new = read_as(OpenedGatewaySessionView, document)
        if new["url"] is None:
            await api.delete(path_to("gateway-sessions", new["id"]))
            raise CommandFailure("The gateway has no address while no service runs. Start one with `dragoman serve`.")
        session.terminal.line(chosen.text(f"{new['url']}{'?tool_search=always' if tool_search else ''}", new["token"]))
        session.terminal.note(
            f"Add this to {chosen.file}. It has the token of the session {new['id']}, valid until {new['expires_at']}."
        )

    session.perform(configure)


@gateway_app.command("list", epilog="Example: dragoman gateway list --json")
def list_sessions(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List sessions, including ended ones, without their tokens."""
    session_of(context).show_list(
        GatewaySessionView,
        path_to("gateway-sessions"),
        ("id", "agent", "ends", "opened", "names", "for"),
        lambda one, names: (
            one["id"],
            names.get(one["agent_id"], one["agent_id"]),
            f"revoked {one['revoked_at']}" if one["revoked_at"] else one["expires_at"],
            one["created_at"],
            one["names"],
            one["run_id"] or one["workflow_run_id"] or one["client_name"] or "",
        ),
        names=("agt",),
        empty="There are no gateway sessions. Open one with `dragoman gateway open --agent NAME`.",
        as_json=as_json,
    )


@gateway_app.command("revoke", epilog="Example: dragoman gateway revoke gws_0123")
def revoke_session(
    context: typer.Context, session_id: Annotated[str, typer.Argument(metavar="ID", help="The session's id, gws_….")]
) -> None:
    """End a session: its token stops working at once."""
    session_of(context).delete(path_to("gateway-sessions", session_id), f"Revoked {session_id}.")
