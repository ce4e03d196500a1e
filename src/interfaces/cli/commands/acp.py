"""`dragoman acp`: an agent for editors that speak the Agent Client Protocol."""

from typing import Annotated

import typer

from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import AGENTS
from interfaces.cli.session import session_of


def acp(
    context: typer.Context,
    *,
    agent: Annotated[
        str, typer.Option("--agent", metavar="NAME", help="The agent, by name or id.", autocompletion=AGENTS)
    ],
) -> None:
    """Serve an agent to an editor over the Agent Client Protocol. The editor starts this command
    and speaks with it over stdin and stdout."""

    async def serve(api: ServiceApi) -> None:
        from importlib.metadata import version

        from interfaces.cli.acp.bridge import AcpBridge
        from interfaces.cli.acp.wire import over_stdio

        await api.get(path_to("agents", agent))
        peer = await over_stdio()
        await peer.serve(AcpBridge(api=api, peer=peer, agent=agent, version=version("dragoman")).answer)

    session_of(context).perform(serve, worker=True)
