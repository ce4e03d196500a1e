"""Address of a remote MCP server without secrets, the program of a started one, and stored secrets
that an edit would send to a new address."""

from urllib.parse import urlsplit

from domain.mcp.auth import secrets_of
from domain.mcp.server import McpServer, McpServerConfig
from domain.secrets.names import references_in
from domain.secrets.secret import SecretRef, SecretValue


def address_of(config: McpServerConfig) -> str | None:
    """Scheme, host, port and path of the URL; user, password, query and fragment may be secrets.
    None for a started server."""
    if config.url is None:
        return None
    parts = urlsplit(config.url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2].lower()}{parts.path}"


def destination_of(config: McpServerConfig) -> str:
    """What gets secrets of persons, in words for them: the address of a remote server, or the
    program of a started one, with its arguments, which hold no secrets."""
    return address_of(config) or " ".join(
        filter(None, (config.kind, config.package, config.path, config.command, *config.args))
    )


def offer_of(server: McpServer) -> str:
    """Names what a person is shown before they give secrets, variables included: it changes with
    each change of the server, and tells nothing of values that are write-only, as a digest of them
    would."""
    return f"{server.id}:{server.version}"


def secrets_sent_elsewhere(stored: McpServerConfig, edited: McpServerConfig) -> tuple[str, ...]:
    """Secrets of `stored` that `edited` would send to another address, by place: `headers.X`,
    `auth.token`, with their name if they have one. Empty for an unchanged address."""
    if address_of(edited) in (None, address_of(stored)):
        return ()
    before = _secrets(stored)
    return tuple(
        f"{path} ({value.name})" if isinstance(value, SecretRef) else path
        for path, value in _secrets(edited).items()
        if value and before.get(path) == value
    )


def _secrets(config: McpServerConfig) -> dict[str, SecretValue]:
    of_auth = {} if config.auth is None else secrets_of(config.auth)
    return {
        **{f"headers.{name}": value for name, value in config.headers.items()},
        **{f"auth.{name}": value for name, value in of_auth.items()},
        **{f"url.{name}": SecretRef(name) for name in references_in(config.url or "")},
    }
