"""MCP servers as organizations register them: how each is reached and how its connections
behave."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from domain.errors import Violation, invalid
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.auth import (
    AuthorizationCodeAuth,
    OAuthSettings,
    OnBehalfAuth,
    ServerAuth,
    header_of,
    secrets_of,
    wrong_with,
)
from domain.mcp.behavior import ConnectionLoss, ElicitationPolicy, OutputValidation, PassingPolicy
from domain.mcp.client_request import ClientRequestKind
from domain.mcp.declared_tool import DeclaredTool, wrong_declarations
from domain.mcp.entry_origin import EntryOrigin
from domain.mcp.images import oci_image
from domain.mcp.installation import Installation
from domain.mcp.network import AllowedHost, ServerNetwork
from domain.mcp.packages import WrongPackageError, npm_package, python_package
from domain.mcp.server_tls import ServerTls, wrong_with_tls
from domain.mcp.slug import is_legal_slug
from domain.rate_limit import RateLimit
from domain.secrets.names import references_in
from domain.secrets.secret import SecretRef, SecretValue, person_secret, violations_of

_COMMAND_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class McpServerKind(StrEnum):
    """How a server is run or reached. The values are part of the public contract."""

    NPM = "npm"
    PYTHON = "python"
    OCI = "oci"
    CUSTOM = "custom"
    SSE = "sse"
    HTTP = "http"
    A2A = "a2a"
    """A remote agent of the A2A protocol, as a server with one tool."""

    @property
    def is_remote(self) -> bool:
        """Whether the server is reached by URL instead of being started as a process."""
        return self in (McpServerKind.SSE, McpServerKind.HTTP, McpServerKind.A2A)

    @property
    def is_package(self) -> bool:
        """Whether the server is installed from a registry of packages or images, or a package
        file."""
        return self in (McpServerKind.NPM, McpServerKind.PYTHON, McpServerKind.OCI)


class Isolation(StrEnum):
    """Who shares a connection: the whole organization, the runs of one thread, or one run."""

    SHARED = "shared"
    THREAD = "thread"
    RUN = "run"


class Credentials(StrEnum):
    """Whose account is used at a server: one of the organization, or that of the person for whom a
    call is made."""

    ORGANIZATION = "organization"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerConfig:
    """The settings of a server. Values in `env`, `headers` and `auth`, and the key in `tls`, are
    secrets, encrypted at rest and never shown.

    - `package` (with `version`) is what npm and python servers are installed from, and the image of
      oci servers.
    - `path` is what a custom server is copied from, if it is not run in place.
    - `command` starts a custom server, or names one of a package's commands.
    - `args` never hold secrets; `url` only references them (`${secret:NAME}` in path or query).
    - `credentials`: with `person`, each person authorizes with their own account, or gives the
      secrets `person:NAME`, and calls use those of the person who started the run or opened the
      gateway session; a started server has processes of each.
    - `tools` are names or globs of the server's tools that are used; None is all.
    - `declared_tools` are the definitions of a server that answers calls only: it gets no
      handshake, and lists nothing.
    - `network` bounds what a started server reaches; `network_hosts` are the hosts of an allowlist.
    - `registry_entry` names the entry of an MCP registry that the server was made from, for newer
      versions.
    - `timeout_s` bounds each call; `idle_timeout_s` is how long an unused connection stays open.
    - `max_response_bytes` bounds one reply on the wire; `max_concurrency` bounds concurrent calls.
    - `rate_limit` bounds the rate of calls; None sets no limit.
    - `team` is the group that it belongs to; None: to the organization.
    """

    slug: str
    kind: McpServerKind
    package: str | None = None
    version: str | None = None
    path: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretValue] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, SecretValue] = field(default_factory=dict)
    auth: ServerAuth | None = None
    tls: ServerTls | None = None
    credentials: Credentials = Credentials.ORGANIZATION
    tools: tuple[str, ...] | None = None
    declared_tools: tuple[DeclaredTool, ...] = ()
    network: ServerNetwork = ServerNetwork.FULL
    network_hosts: tuple[str, ...] = ()
    trusted: bool = False
    isolation: Isolation = Isolation.RUN
    on_connection_loss: ConnectionLoss = ConnectionLoss.MARK_UNHEALTHY
    output_validation: OutputValidation = OutputValidation.WARN
    elicitation: ElicitationPolicy = ElicitationPolicy.DECLINE
    sampling: PassingPolicy = PassingPolicy.DECLINE
    roots: PassingPolicy = PassingPolicy.DECLINE
    timeout_s: float = 30.0
    idle_timeout_s: float = 300.0
    max_response_bytes: int = 4 * 1024 * 1024
    max_concurrency: int = 8
    rate_limit: RateLimit | None = None
    registry_entry: str | None = None
    enabled: bool = True
    team: str | None = None

    def __post_init__(self) -> None:
        wrong = []
        if not is_legal_slug(self.slug):
            wrong.append(Violation(path="slug", message="must match [a-z0-9][a-z0-9-]{0,31}"))
        if self.registry_entry is not None and EntryOrigin.read(self.registry_entry) is None:
            wrong.append(Violation(path="registry_entry", message="must be REGISTRY:NAMESPACE/NAME@VERSION"))
        wrong += [*self._wrong_start(), *self._misplaced_fields(), *self._wrong_secrets(), *self._wrong_auth()]
        wrong += [
            *self._wrong_credentials(),
            *([] if self.tls is None else wrong_with_tls(self.tls, self.url)),
            *self._wrong_network(),
            *wrong_declarations(self.declared_tools),
            *self._wrong_requests(),
        ]
        numbers = {"timeout_s": self.timeout_s, "idle_timeout_s": self.idle_timeout_s}
        numbers |= {"max_response_bytes": self.max_response_bytes, "max_concurrency": self.max_concurrency}
        wrong += [
            Violation(path=name, message="must be greater than 0") for name, number in numbers.items() if number <= 0
        ]
        if wrong:
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)

    def offers(self, tool_name: str) -> bool:
        """Whether a tool of the server, by the server's name for it, is used."""
        return self.tools is None or any(fnmatchcase(tool_name, entry) for entry in self.tools)

    @property
    def is_on_behalf(self) -> bool:
        """Whether the sign-in of each person is their account at the server."""
        return isinstance(self.auth, OnBehalfAuth)

    @property
    def answers_calls_only(self) -> bool:
        """Whether the server is sent tool calls and nothing else, because its tools are
        declared."""
        return bool(self.declared_tools)

    @property
    def source(self) -> tuple[McpServerKind, str | None, str | None, str | None]:
        """The source of an installation. An installation from another source does not fit."""
        return self.kind, self.package, self.version, self.path

    @property
    def needs_installation(self) -> bool:
        """Whether the server must be installed before it can be started."""
        return self.kind.is_package or self.path is not None

    @property
    def asks(self) -> frozenset[ClientRequestKind]:
        """The requests to gateway clients that this server may send in the middle of their
        calls."""
        kinds = {ClientRequestKind.ELICITATION} if self.elicitation is ElicitationPolicy.ASK else set()
        kinds |= {ClientRequestKind.SAMPLING} if self.sampling is PassingPolicy.PASS else set()
        kinds |= {ClientRequestKind.ROOTS} if self.roots is PassingPolicy.PASS else set()
        return frozenset(kinds)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The sorted names of the referenced secrets."""
        of_auth = () if self.auth is None else secrets_of(self.auth).values()
        of_tls = () if self.tls is None else (self.tls.private_key,)
        values = (*self.env.values(), *self.headers.values(), *of_auth, *of_tls)
        named = {value.name for value in values if isinstance(value, SecretRef)}
        return tuple(sorted(named | set(references_in(self.url or ""))))

    @property
    def person_secrets(self) -> tuple[str, ...]:
        """The sorted names of the secrets that each person gives (`person:NAME`)."""
        return tuple(given for name in self.secret_names if (given := person_secret(name)) is not None)

    def _wrong_secrets(self) -> list[Violation]:
        return [
            violation
            for group, values in (("env", self.env), ("headers", self.headers))
            for name, value in values.items()
            for violation in violations_of(f"{group}.{name}", value, of_persons=True)
        ] + [
            violation
            for name in references_in(self.url or "")
            for violation in violations_of("url", SecretRef(name), of_persons=True)
        ]

    def _wrong_auth(self) -> list[Violation]:
        if self.auth is None:
            return []
        taken = header_of(self.auth)
        return [
            *wrong_with(self.auth),
            *(
                Violation(path=f"headers.{name}", message="is the header that auth sets")
                for name in self.headers
                if name.lower() == taken
            ),
        ]

    def _wrong_credentials(self) -> list[Violation]:
        takes_secrets = bool(self.person_secrets)
        if self.credentials is Credentials.ORGANIZATION:
            message = "must be person, because each person gives a secret person:NAME"
            if self.is_on_behalf:
                message = "must be person: auth of this type is on behalf of each person"
            return [Violation(path="credentials", message=message)] if takes_secrets or self.is_on_behalf else []
        by_person = isinstance(self.auth, AuthorizationCodeAuth) or self.is_on_behalf
        is_one_way = not isinstance(self.auth, OAuthSettings) if takes_secrets else by_person
        if self.kind is not McpServerKind.A2A and is_one_way:
            return []
        message = (
            "person needs a secret person:NAME, or kind http or sse with auth of type oauth_authorization_code, "
            "oauth_token_exchange or oauth_id_jag; kind a2a has the organization's account"
        )
        return [Violation(path="credentials", message=message)]

    def _wrong_network(self) -> list[Violation]:
        is_list = self.network is ServerNetwork.ALLOWLIST
        if is_list and self.kind is McpServerKind.OCI:
            return [Violation(path="network", message="a server of kind oci may have the network none or full")]
        if is_list and not self.network_hosts:
            return [Violation(path="network_hosts", message="an allowlist needs the hosts that it allows")]
        if self.network_hosts and not is_list:
            return [Violation(path="network_hosts", message="needs the network allowlist")]
        wrong = []
        for place, host in enumerate(self.network_hosts):
            try:
                AllowedHost.read(host)
            except ValueError as error:
                wrong.append(Violation(path=f"network_hosts.{place}", message=str(error)))
        return wrong

    def _wrong_requests(self) -> list[Violation]:
        """A server without a handshake never learns which requests it may send."""
        if not self.answers_calls_only:
            return []
        wrong = sorted(kind.capability for kind in self.asks)
        return [Violation(path=name, message="must be decline for a server with declared tools") for name in wrong]

    def _misplaced_fields(self) -> list[Violation]:
        given: dict[str, object] = {
            "package": self.package,
            "version": self.version,
            "path": self.path,
            "command": self.command,
            "args": self.args,
            "env": self.env,
            "url": self.url,
            "headers": self.headers,
            "auth": self.auth,
            "tls": self.tls,
            "network": self.network is not ServerNetwork.FULL,
            "network_hosts": self.network_hosts,
            "declared_tools": self.declared_tools,
        }
        return [
            Violation(path=name, message=f"does not apply to a server of kind {self.kind}")
            for name, value in given.items()
            if value and name not in _FIELDS[self.kind]
        ]

    def _wrong_start(self) -> list[Violation]:
        """Violations in the settings for installing, starting or reaching the server."""
        if self.kind.is_remote:
            if self.url and self.url.startswith(("http://", "https://")):
                return []
            return [Violation(path="url", message=f"a server of kind {self.kind} needs an http or https URL")]
        if self.kind is McpServerKind.CUSTOM:
            if self.path is not None and (not self.path.startswith("/") or "\0" in self.path):
                return [Violation(path="path", message="must be an absolute path")]
            if not self.command and self.path is None:
                return [Violation(path="command", message="a custom server needs a command, or a path to copy it from")]
            return []
        if not self.package:
            return [Violation(path="package", message=f"a server of kind {self.kind} needs a package")]
        wrong = []
        try:
            _PACKAGES[self.kind](self.package, self.version)
        except WrongPackageError as error:
            wrong.append(error.violation)
        if self.command is not None and not _COMMAND_NAME.fullmatch(self.command):
            wrong.append(Violation(path="command", message="must be the name of one of the package's commands"))
        return wrong


_STARTED = frozenset({"command", "args", "env", "network", "network_hosts"})
_REMOTE = frozenset({"url", "headers", "auth", "tls"})
_FIELDS = {
    McpServerKind.NPM: _STARTED | {"package", "version"},
    McpServerKind.PYTHON: _STARTED | {"package", "version"},
    McpServerKind.OCI: {"package", "version", "args", "env", "network"},
    McpServerKind.CUSTOM: _STARTED | {"path", "declared_tools"},
    McpServerKind.SSE: _REMOTE,
    McpServerKind.A2A: _REMOTE,
    McpServerKind.HTTP: _REMOTE | {"declared_tools"},
}
"""The settings that apply to some kinds only."""
_PACKAGES: Mapping[McpServerKind, Callable[[str, str | None], object]] = {
    McpServerKind.NPM: npm_package,
    McpServerKind.PYTHON: python_package,
    McpServerKind.OCI: oci_image,
}


def default_isolation(kind: McpServerKind) -> Isolation:
    """Remote servers are shared by the organization; a started server belongs to one run."""
    return Isolation.SHARED if kind.is_remote else Isolation.RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A registered server. `version` counts its changes, including installations and
    uninstallations. Connections and catalogs of an older version are not reused."""

    id: McpServerId
    organization_id: OrganizationId
    version: int
    config: McpServerConfig
    created_at: datetime
    updated_at: datetime
    installation: Installation | None = None
    tested_id: McpServerId | None = None
    """The stored server that this temporary copy tests, which holds the authorization."""
    person_id: UserId | None = None
    """The person whose account is used, for a server with credentials of each person."""

    def acting_for(self, person_id: UserId | None) -> "McpServer":
        """The server with the account of this person; unchanged if it uses the organization's."""
        return replace(self, person_id=person_id) if self.config.credentials is Credentials.PERSON else self

    @property
    def team(self) -> str | None:
        return self.config.team

    @property
    def lacks_installation(self) -> bool:
        """Whether the server cannot be started because it is not installed."""
        return self.config.needs_installation and self.installation is None
