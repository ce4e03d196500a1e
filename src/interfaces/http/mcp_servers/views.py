"""MCP servers, their status, tools and test results as JSON. Values of env and headers never
appear."""

from collections.abc import Mapping
from typing import Annotated, NotRequired, TypedDict

from application.mcp.import_outcome import ImportOutcome
from application.mcp.ports import McpFailureKind, ServerState
from domain.mcp.behavior import ConnectionLoss, ElicitationPolicy, OutputValidation, PassingPolicy
from domain.mcp.network import ServerNetwork
from domain.mcp.pinning import DefinitionState
from domain.mcp.server import Credentials, Isolation, McpServer, McpServerKind
from domain.threads.message_json import timestamp
from interfaces.http.mcp_servers.auth_views import AuthView, auth_view
from interfaces.http.mcp_servers.tls_views import TlsView, tls_view
from interfaces.http.rate_views import RateLimitView, rate_limit_view
from interfaces.http.secrets.reference_views import WriteOnlyView, write_only_view
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp, UpdatedAt


class DeclaredToolView(TypedDict):
    """A tool of a server that answers calls only, as its administrator declares it."""

    name: Annotated[str, "Name of the tool at its server."]
    description: Annotated[str, "Description of the tool, for models."]
    parameters: Annotated[Mapping[str, object], "JSON Schema of its arguments, of type object."]
    output_schema: Annotated[Mapping[str, object] | None, "JSON Schema of its structured results; null if it has none."]


class McpServerView(TypedDict):
    """A registered server; `env` and `headers` show no values. `version` is that of its package;
    `revision` counts its changes."""

    id: Annotated[str, "Id of the server."]
    slug: Annotated[str, "Unique in the organization: `[a-z0-9][a-z0-9-]{0,31}`."]
    kind: Annotated[McpServerKind, "How the server is run or reached."]
    package: Annotated[
        str | None,
        "For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`. For kind oci: a container image, such as `ghcr.io/owner/name:1.2`.",
    ]
    version: Annotated[
        str | None,
        "Version of the package. Default: the newest at installation. For kind oci: a tag or digest. Default: `latest`.",
    ]
    registry_entry: Annotated[
        str | None, "Entry of an MCP registry that it was made from: `REGISTRY:NAMESPACE/NAME@VERSION`."
    ]
    path: Annotated[str | None, "Executable or directory that installation of a custom server copies."]
    command: Annotated[
        str | None,
        "Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm and python: one of the package's commands, if it has several.",
    ]
    args: Annotated[list[str], "Arguments of the command, or of the image. They must not contain secrets."]
    env: Annotated[
        dict[str, WriteOnlyView],
        "Environment of a started server. Values are write-only, or references to named secrets.",
    ]
    url: Annotated[str | None, "Address of a server of kind http, sse or a2a."]
    headers: Annotated[
        dict[str, WriteOnlyView],
        "Headers of requests to a remote server. Values are write-only, or references to named secrets.",
    ]
    auth: Annotated[AuthView | None, "Authentication at a server of kind http, sse or a2a."]
    tls: Annotated[TlsView | None, "TLS with a remote server, besides the usual; null: the usual alone."]
    credentials: Annotated[
        Credentials,
        "Whose account is used: one of the organization, or that of the person who started the run. `person` needs a secret `person:NAME`, which each person gives, in env, headers, url or auth, or kind http or sse with auth of type oauth_authorization_code, oauth_token_exchange or oauth_id_jag. Kind a2a has none.",
    ]
    tools: Annotated[
        list[str] | None,
        "Names or globs of the server's tools that are used, as the server names them. Null is all; `[]` is none.",
    ]
    declared_tools: Annotated[
        list[DeclaredToolView],
        "For kinds http and custom: definitions of a server that answers only `tools/call`. It then gets no handshake, and its tools are not listed. Empty: the server lists its tools.",
    ]
    network: Annotated[
        ServerNetwork,
        "What a started server reaches: nothing, the hosts of `network_hosts` through Dragoman's proxy, or all addresses that the operator permits.",
    ]
    network_hosts: Annotated[
        list[str],
        "Hosts of the allowlist: `api.example.com`, or `*.example.com` for all names below it, at ports 80 and 443 or at `:PORT`.",
    ]
    trusted: Annotated[bool, "Whether its hints and instructions are trusted."]
    isolation: Annotated[Isolation, "Scope of a connection. Default: `shared` for remote servers, `run` for others."]
    on_connection_loss: Annotated[
        ConnectionLoss,
        "While the shared connection is lost: keep its tools, or omit them. Omitting needs a shared connection.",
    ]
    output_validation: Annotated[
        OutputValidation, "Handling of structured results that do not match the tool's output schema."
    ]
    elicitation: Annotated[
        ElicitationPolicy,
        "When it requests input during a call: decline, or pass the request to the run or the gateway's client.",
    ]
    sampling: Annotated[
        PassingPolicy, "When it requests a model completion during a call: decline, or pass it to the gateway's client."
    ]
    roots: Annotated[
        PassingPolicy, "When it requests the client's roots: decline, or pass the request to the gateway's client."
    ]
    timeout_s: Annotated[float, "Timeout of each call, in seconds."]
    idle_timeout_s: Annotated[float, "Idle seconds after which an unused connection closes."]
    max_response_bytes: Annotated[int, "Most bytes of one response."]
    max_concurrency: Annotated[int, "Most concurrent calls; more wait."]
    rate_limit: Annotated[RateLimitView | None, "Limit of its calls. Further calls wait, until their deadline."]
    enabled: Annotated[bool, "Whether it is used."]
    team: Annotated[
        str | None,
        "Name of the group that it belongs to: others neither see nor use it, and only agents of the group have its tools. "
        "Null: it belongs to the organization.",
    ]
    revision: Annotated[int, "Counts the changes, from 1. `If-Match` takes it."]
    created_at: CreatedAt
    updated_at: UpdatedAt


class InstallProgressView(TypedDict):
    """Progress of an installation."""

    step: Annotated[str, "The current step."]
    percent: Annotated[int, "Progress from 0 to 100; it never decreases."]


class ProcessStatusView(TypedDict):
    """State of a server in another process on the same database; `name` is its machine and
    number."""

    name: Annotated[str, "Machine and number of the process."]
    state: Annotated[ServerState, "State of the server in that process."]
    since: Annotated[Timestamp, "Beginning of the state."]
    last_error: Annotated[str | None, "Last error, as a sentence; null if there was none."]


class ServerStatusView(TypedDict):
    """Installation and connections of a server, over all processes on the database. `install` is
    null unless an installation is in progress."""

    state: Annotated[ServerState, "State of the server."]
    since: Annotated[Timestamp, "Beginning of the state."]
    last_error: Annotated[str | None, "Last error, as a sentence; null if there was none."]
    protocol_version: Annotated[
        str | None, "Version of the protocol; null unless connected, or if the tools are declared."
    ]
    tool_count: Annotated[int | None, "Number of its tools; null if never listed."]
    installed_version: Annotated[str | None, "Installed version of its package; null if not installed."]
    installed_at: Annotated[Timestamp | None, "Time of the installation; null if not installed."]
    install: Annotated[InstallProgressView | None, "Progress of an installation; null unless one is in progress."]
    processes: Annotated[list[ProcessStatusView], "Other processes on the same database that are connected to it."]


class McpToolView(TypedDict):
    """A tool as its server describes it; `model_name` is its name for models."""

    name: Annotated[str, "Name of the tool at its server."]
    model_name: Annotated[str, "Name of the tool as models see it."]
    description: Annotated[str, "Description of the tool."]
    parameters: Annotated[Mapping[str, object], "JSON Schema of its arguments."]
    output_schema: Annotated[Mapping[str, object] | None, "JSON Schema of its structured results; null if it has none."]
    read_only_hint: Annotated[bool, "The server says that the tool changes nothing."]
    idempotent_hint: Annotated[bool, "The server says that repeating a call changes nothing more."]
    destructive_hint: Annotated[
        bool | None, "The server says whether the tool may delete or overwrite; null if it does not say."
    ]


class RejectionView(TypedDict):
    """A person's refusal of a tool's definition."""

    by: Annotated[str, "Id of the API key or user."]
    at: Annotated[Timestamp, "When."]
    reason: Annotated[str | None, "Why; null if not said."]


class PinnedToolView(McpToolView):
    """A tool and its approval: `state` is `approved`, `quarantined` if it is new or changed since
    its approval, or `rejected` by a person. Unless it is approved, `diff` shows the change as a
    unified diff."""

    state: Annotated[
        DefinitionState,
        "`quarantined` if it is new or changed since its approval, and waits for a person; `rejected` if a person has refused this"
        " definition. Runs get approved tools only.",
    ]
    digest: Annotated[str, "Digest of the definition; an approval names it."]
    diff: NotRequired[
        Annotated[str, "The change that an approval would accept, as a unified diff. Not for an approved tool."]
    ]
    rejection: NotRequired[Annotated[RejectionView, "Who rejected the definition. Only for a rejected tool."]]


class SkippedToolView(TypedDict):
    """A tool that could not be registered."""

    name: Annotated[str, "Name of the tool at its server."]
    reason: Annotated[str, "Why it could not be registered."]


class McpServerToolsView(TypedDict):
    """Tools of a server as of `taken_at`, null if never listed. `next_cursor` is null on the
    last page. Each page lists what was `skipped`."""

    data: Items[PinnedToolView]
    next_cursor: NextCursor
    skipped: Annotated[list[SkippedToolView], "Tools that could not be registered. Each page lists all of them."]
    taken_at: Annotated[Timestamp | None, "Time of the listing; null if never listed."]
    protocol_version: Annotated[str | None, "Version of the protocol at that time; null if the tools are declared."]


class ServerInfoView(TypedDict):
    """The server's description of itself."""

    name: Annotated[str, "Name that the server gives itself."]


class TestFailureView(TypedDict):
    """Why a test failed; `stderr` is the end of a started server's error output."""

    code: Annotated[McpFailureKind, "Kind of the failure."]
    detail: Annotated[str, "The failure as a sentence."]
    stderr: NotRequired[Annotated[str, "End of a started server's error output."]]


class TestResultView(TypedDict):
    """The outcome of a test."""

    ok: Annotated[bool, "Whether the server works."]
    declared: Annotated[
        bool, "Whether its tools are declared. Then their definitions were checked, and nothing was sent to the server."
    ]
    protocol_version: Annotated[
        str | None, "Version of the protocol; null if the test failed, or the tools are declared."
    ]
    server_info: Annotated[ServerInfoView | None, "The server's description of itself; null if the test failed."]
    tools: Annotated[list[McpToolView], "Tools of the server."]
    skipped: Annotated[list[SkippedToolView], "Tools that could not be registered."]
    latency_ms: Annotated[int, "Duration of the test."]
    error: Annotated[TestFailureView | None, "Why the test failed; null if it did not."]


class ServerLogsView(TypedDict):
    """Output of the installation, and the end of the server's error output."""

    text: Annotated[str, "Output of the installation, and the end of the server's error output."]


class ImportedEntryView(TypedDict):
    """The result of one entry: `outcome` is `created` or `skipped`; `remarks` give reasons or
    required actions."""

    name: Annotated[str, "Name in the file."]
    slug: Annotated[str, "Slug of the server."]
    outcome: Annotated[ImportOutcome, "What became of the entry."]
    kind: Annotated[McpServerKind | None, "Kind of the server; null if it was skipped."]
    needs_install: Annotated[bool, "Whether the server is to be installed before it can be used."]
    remarks: Annotated[list[str], "Reasons, or required actions."]


class ImportView(TypedDict):
    """The results, in the order of the file."""

    data: Annotated[list[ImportedEntryView], "Results, in the order of the file."]


class McpServerPage(TypedDict):
    """A page of servers; `next_cursor` is null on the last one."""

    data: Items[McpServerView]
    next_cursor: NextCursor


def server_view(server: McpServer) -> McpServerView:
    config = server.config
    return {
        "id": server.id,
        "slug": config.slug,
        "kind": config.kind,
        "package": config.package,
        "version": config.version,
        "registry_entry": config.registry_entry,
        "path": config.path,
        "command": config.command,
        "args": list(config.args),
        "env": {name: write_only_view(value) for name, value in config.env.items()},
        "url": config.url,
        "headers": {name: write_only_view(value) for name, value in config.headers.items()},
        "auth": auth_view(config.auth),
        "tls": tls_view(config.tls),
        "credentials": config.credentials,
        "tools": None if config.tools is None else list(config.tools),
        "declared_tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "output_schema": tool.output_schema,
            }
            for tool in config.declared_tools
        ],
        "network": config.network,
        "network_hosts": list(config.network_hosts),
        "trusted": config.trusted,
        "isolation": config.isolation,
        "on_connection_loss": config.on_connection_loss,
        "output_validation": config.output_validation,
        "elicitation": config.elicitation,
        "sampling": config.sampling,
        "roots": config.roots,
        "timeout_s": config.timeout_s,
        "idle_timeout_s": config.idle_timeout_s,
        "max_response_bytes": config.max_response_bytes,
        "max_concurrency": config.max_concurrency,
        "rate_limit": rate_limit_view(config.rate_limit),
        "enabled": config.enabled,
        "team": config.team,
        "revision": server.version,
        "created_at": timestamp(server.created_at),
        "updated_at": timestamp(server.updated_at),
    }
