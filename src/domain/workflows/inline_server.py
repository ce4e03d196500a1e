"""Reads an MCP server that a node defines inline instead of naming a registered one."""

from collections.abc import Mapping

from domain.errors import ServiceError
from domain.json_value import JsonObject, JsonValue
from domain.mcp.auth import ApiKeyAuth, BearerAuth, ServerAuth
from domain.mcp.behavior import OutputValidation
from domain.mcp.network import ServerNetwork
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind, default_isolation
from domain.secrets.names import references_in
from domain.secrets.secret import NOT_A_SECRET, SecretRef, SecretValue, is_legal_reference
from domain.workflows.config_reader import ConfigReader

_KINDS = (McpServerKind.CUSTOM.value, McpServerKind.SSE.value, McpServerKind.HTTP.value)
_INSTALLED = tuple(kind.value for kind in McpServerKind if kind.is_package)
_AUTH = ("bearer", "api_key")


def read_inline_server(reader: ConfigReader) -> McpServerConfig | None:
    """The server's settings; None if they are unusable. Faults are recorded in the reader.

    Rules: those of registered servers, and two more:
    - A server that needs an installation is rejected.
    - Values of `env`, `headers` and `auth` must be named secrets, because a workflow is shown as it
      was written.
    """
    slug = reader.text("slug")
    kind = _kind(reader)
    if reader.has("path"):
        reader.wrong("path", "needs an installation: register such a server, and name it")
    env, headers = _values(reader, "env"), _values(reader, "headers")
    auth = _auth(reader)
    isolation = reader.choice("isolation", tuple(Isolation), default_isolation(kind).value)
    validation = reader.choice("output_validation", tuple(OutputValidation), OutputValidation.WARN.value)
    network = reader.choice("network", tuple(ServerNetwork), ServerNetwork.FULL.value)
    args, network_hosts = _texts(reader, "args"), _texts(reader, "network_hosts")
    command = reader.text("command") if reader.has("command") else None
    url = reader.text("url") if reader.has("url") else None
    reader.secrets += [(f"{reader.prefix}url", name) for name in references_in(url or "")]
    trusted = reader.flag("trusted", default=False)
    timeout_s = reader.number("timeout_s", default=30.0, least=0.001, most=3_600.0) or 30.0
    idle_timeout_s = reader.number("idle_timeout_s", default=300.0, least=1.0, most=86_400.0) or 300.0
    max_concurrency = reader.integer("max_concurrency", default=8, least=1, most=1_000)
    before = len(reader.faults)
    reader.finish()
    if len(reader.faults) > before or not slug:
        return None
    try:
        return McpServerConfig(
            slug=slug,
            kind=kind,
            command=command,
            args=args,
            env=env,
            url=url,
            headers=headers,
            auth=auth,
            network=ServerNetwork(network),
            network_hosts=network_hosts,
            trusted=trusted,
            isolation=Isolation(isolation),
            output_validation=OutputValidation(validation),
            timeout_s=timeout_s,
            idle_timeout_s=idle_timeout_s,
            max_concurrency=max_concurrency,
        )
    except ServiceError as error:
        for violation in error.violations:
            reader.wrong_once(violation.path, violation.message)
        return None


def _kind(reader: ConfigReader) -> McpServerKind:
    kind = reader.text("kind")
    if kind in _INSTALLED:
        reader.wrong("kind", "needs an installation: register such a server, and name it")
    elif kind and kind not in _KINDS:
        reader.wrong("kind", f"must be one of {', '.join(_KINDS)}")
    return McpServerKind(kind) if kind in _KINDS else McpServerKind.CUSTOM


def _texts(reader: ConfigReader, name: str) -> tuple[str, ...]:
    given = reader.config[name] if reader.has(name) else []
    if isinstance(given, list) and all(isinstance(each, str) for each in given):
        return tuple(map(str, given))
    reader.wrong(name, "must be a list of texts")
    return ()


def _values(reader: ConfigReader, group: str) -> dict[str, SecretRef]:
    given = {name: _secret(reader, f"{group}.{name}", value) for name, value in reader.mapping(group).items()}
    return {name: reference for name, reference in given.items() if reference is not None}


def _secret(reader: ConfigReader, path: str, value: JsonValue) -> SecretRef | None:
    name = value.get("secret") if isinstance(value, dict) and set(value) == {"secret"} else None
    if not isinstance(name, str):
        reader.wrong(path, 'must be {"secret": NAME}: a workflow is shown as it was written')
        return None
    if not is_legal_reference(name):
        reader.wrong(f"{path}.secret", NOT_A_SECRET)
        return None
    reader.secrets.append((f"{reader.prefix}{path}.secret", name))
    return SecretRef(name)


def _auth(reader: ConfigReader) -> ServerAuth | None:
    auth = reader.section("auth")
    if auth is None:
        return None
    kind = auth.text("type")
    if kind and kind not in _AUTH:
        auth.wrong("type", f"must be one of {', '.join(_AUTH)}; register a server with OAuth, and name it")
        return None
    found: ServerAuth | None = None
    if kind == "bearer":
        token = _of_auth(auth, "token")
        found = None if token is None else BearerAuth(token=token)
    elif kind == "api_key":
        header, value = auth.text("header"), _of_auth(auth, "value")
        found = None if value is None else ApiKeyAuth(header=header, value=value)
    auth.finish()
    return found


def _of_auth(auth: ConfigReader, name: str) -> SecretRef | None:
    if not auth.has(name):
        auth.wrong(name, "is required")
        return None
    return _secret(auth, name, auth.config[name])


def inline_server_json(config: McpServerConfig) -> JsonObject:
    """The inverse of `read_inline_server`."""
    args: list[JsonValue] = [*config.args]
    hosts: list[JsonValue] = [*config.network_hosts]
    stated: JsonObject = {
        "slug": config.slug,
        "kind": config.kind.value,
        "command": config.command,
        "args": args,
        "env": _named(config.env),
        "url": config.url,
        "headers": _named(config.headers),
        "auth": _auth_json(config.auth),
        "network": None if config.network is ServerNetwork.FULL else config.network.value,
        "network_hosts": hosts or None,
        "trusted": config.trusted,
        "isolation": config.isolation.value,
        "output_validation": config.output_validation.value,
        "timeout_s": config.timeout_s,
        "idle_timeout_s": config.idle_timeout_s,
        "max_concurrency": config.max_concurrency,
    }
    return {name: value for name, value in stated.items() if value is not None}


def inline_server_of(stated: JsonObject) -> McpServerConfig:
    """The inverse of `inline_server_json`. Raises ValueError."""
    config = read_inline_server(ConfigReader(stated))
    if config is None:
        raise ValueError("not the settings of a server")
    return config


def _named(values: Mapping[str, SecretValue]) -> JsonObject:
    return {name: {"secret": value.name} for name, value in values.items() if isinstance(value, SecretRef)}


def _auth_json(auth: ServerAuth | None) -> JsonValue:
    match auth:
        case BearerAuth(token=SecretRef(name=name)):
            return {"type": "bearer", "token": {"secret": name}}
        case ApiKeyAuth(header=header, value=SecretRef(name=name)):
            return {"type": "api_key", "header": header, "value": {"secret": name}}
        case _:
            return None
