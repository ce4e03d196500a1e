"""Arguments that several commands share, with what the shell completes for them."""

from pathlib import Path
from typing import Annotated

import typer

from interfaces.cli.completion import completed

AGENTS = completed("agents", "name", described_by="model")
RUNS = completed("runs")
SERVERS = completed("mcp-servers", "slug", described_by="kind")
THREADS = completed("threads", described_by="created_at")
WORKFLOWS = completed("workflows", "name", described_by="updated_at")

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="Name or id.", autocompletion=AGENTS)]
RunArgument = Annotated[str, typer.Argument(metavar="ID", help="The run's id, or its beginning.", autocompletion=RUNS)]
ServerArgument = Annotated[str, typer.Argument(metavar="SLUG", help="The server's slug or id.", autocompletion=SERVERS)]
ThreadArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The thread's id, or its beginning.", autocompletion=THREADS)
]
WorkflowArgument = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Name or id.", autocompletion=WORKFLOWS)]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A model setting, such as effort=high. Repeatable."),
]
OutputSchemaOption = Annotated[
    Path | None,
    typer.Option("--output-schema", metavar="FILE", help="A .json or .yaml file with the JSON Schema of the answer."),
]
MetadataOption = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="NAME=VALUE", help="Metadata. Repeatable.")
]
LaneOption = Annotated[
    str | None,
    typer.Option("--lane", metavar="LANE", help="interactive, normal or batch; by default the agent's."),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="The agent, by name or id.", autocompletion=AGENTS)
]

OAuthOption = Annotated[
    bool, typer.Option("--oauth", help="A person authorizes Dragoman there: dragoman mcp authorize.")
]
AuthOption = Annotated[
    str | None,
    typer.Option(
        "--auth",
        metavar="JSON",
        help='How Dragoman authenticates there, as in the API: {"type": "oauth_client_credentials", "client_id": "me", '
        '"client_secret": {"secret": NAME}}.',
    ),
]
ClientCertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--client-certificate", metavar="FILE", help="Client certificate in PEM that a remote server requires."
    ),
]
ClientKeyOption = Annotated[
    str | None,
    typer.Option("--client-key-secret", metavar="SECRET", help="The named secret that is its private key, in PEM."),
]
AuthoritiesOption = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", help="Certificate authorities in PEM, in place of those of the system."),
]
CredentialsOption = Annotated[
    str | None,
    typer.Option(
        "--credentials",
        metavar="WHOSE",
        help="Whose account is used: organization (default), or person: each their own. person needs --oauth, or a secret person:NAME.",
    ),
]
