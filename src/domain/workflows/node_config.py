"""Reads the configuration of a node of any kind and records all faults at once."""

import re
from collections.abc import Mapping
from typing import assert_never

from domain.json_value import JsonObject, JsonValue
from domain.mcp.slug import is_legal_slug
from domain.secrets.secret import NOT_A_SECRET, SecretRef, SecretValue, is_legal_reference
from domain.tools.capabilities import NATIVE_TYPES, ToolType
from domain.workflows.agent_node import read_agent_node
from domain.workflows.config_reader import ConfigReader
from domain.workflows.graph import (
    BoundValue,
    Case,
    ConditionConfig,
    EntrypointConfig,
    HttpRequestConfig,
    HumanInputConfig,
    JoinStrategy,
    McpServerNodeConfig,
    NativeToolConfig,
    NodeConfig,
    NodeKind,
    NodeMode,
    NodeSettings,
    Retry,
    ToolSettings,
    TransformConfig,
)
from domain.workflows.inline_server import read_inline_server
from domain.workflows.templates import placeholders

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

_DAY_S = 86_400.0
_MAX_ATTEMPTS = 10
_MAX_CASES = 50
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HANDLE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_ORIGIN = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"})
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


def read_settings(reader: ConfigReader) -> NodeSettings:
    join = reader.choice("join", tuple(JoinStrategy), JoinStrategy.ALL.value)
    retry = reader.section("retry")
    attempts, delay_s = 1, 1.0
    if retry is not None:
        attempts = retry.integer("attempts", default=1, least=1, most=_MAX_ATTEMPTS)
        delay_s = retry.number("delay_s", default=1.0, least=0.0, most=3_600.0) or 0.0
        retry.finish()
    timeout_s = reader.number("timeout_s", default=None, least=0.001, most=365 * _DAY_S)
    return NodeSettings(join=JoinStrategy(join), retry=Retry(attempts=attempts, delay_s=delay_s), timeout_s=timeout_s)


def read_config(kind: NodeKind, mode: NodeMode, reader: ConfigReader) -> NodeConfig:
    """The configuration. Faults are recorded in the reader; the result is usable only if there are
    none."""
    config = _of_kind(kind, mode, reader)
    if kind is not NodeKind.HTTP_REQUEST:
        for path, _ in reader.input_names:
            reader.wrong(
                path, "has inputs in a placeholder, which this kind does not have; refer to other nodes: {{NODE.path}}"
            )
    reader.finish()
    return config


def _of_kind(kind: NodeKind, mode: NodeMode, reader: ConfigReader) -> NodeConfig:
    match kind:
        case NodeKind.ENTRYPOINT:
            return EntrypointConfig(schema=reader.schema("schema"))
        case NodeKind.AGENT:
            return read_agent_node(mode, reader)
        case NodeKind.HTTP_REQUEST:
            return _http_request(mode, reader)
        case NodeKind.MCP_SERVER:
            return _mcp_server(mode, reader)
        case NodeKind.NATIVE_TOOL:
            names = tuple(kind.value for kind in NATIVE_TYPES)
            return NativeToolConfig(tool=ToolType(reader.choice("tool", names, names[0], required=True)))
        case NodeKind.TRANSFORM:
            return TransformConfig(expression=reader.text("expression"), input=reader.template("input"))
        case NodeKind.CONDITION:
            return _condition(reader)
        case NodeKind.HUMAN_INPUT:
            prompt = reader.text("prompt")
            reader.note_template("prompt", prompt)
            return HumanInputConfig(prompt=prompt, schema=reader.schema("schema"))
        case _:
            assert_never(kind)


def _http_request(mode: NodeMode, reader: ConfigReader) -> HttpRequestConfig:
    method = reader.choice("method", METHODS, "GET")
    url = reader.text("url")
    reader.note_template("url", url)
    headers = tuple((name, _header(reader, name, value)) for name, value in reader.mapping("headers").items())
    query = tuple(reader.mapping("query").items())
    reader.note_template("query", dict(query))
    body = reader.template("body")
    if body is not None and method in ("GET", "HEAD"):
        reader.wrong("body", f"a {method} request has no body")
    inputs = tuple((name, schema) for name in reader.mapping("inputs") if (schema := _input(reader, name)) is not None)
    tool = None
    bound: tuple[tuple[str, BoundValue], ...] = ()
    if mode is NodeMode.TOOL:
        tool = _tool(reader)
    else:
        bound = _bound(reader)
    config = HttpRequestConfig(
        method=method,
        url=url,
        headers=headers,
        query=query,
        body=body,
        inputs=inputs,
        bound=bound,
        tool=tool,
        idempotent=reader.flag("idempotent", default=method in ("GET", "HEAD")),
    )
    _check_inputs(reader, config)
    _check_url(reader, config)
    return config


def _header(reader: ConfigReader, name: str, value: JsonValue) -> SecretValue:
    path = f"headers.{name}"
    if _HEADER.fullmatch(name) is None:
        reader.wrong(path, "is not the name of a header")
    elif name.lower() in _OURS:
        reader.wrong(path, "is set by the service")
    secret = _secret(reader, path, value)
    if secret is not None:
        return secret
    if not isinstance(value, str):
        reader.wrong(path, 'must be text or {"secret": NAME}')
        return ""
    if any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in value):
        reader.wrong(path, "must not hold control characters")
    reader.note_template(path, value)
    if name.lower() in _CREDENTIALS and next(placeholders(value), None) is None:
        reader.wrong(path, 'is a credential: refer to it as {"secret": NAME}')
    return value


def _secret(reader: ConfigReader, path: str, value: JsonValue) -> SecretRef | None:
    if not isinstance(value, dict) or set(value) != {"secret"}:
        return None
    name = value["secret"]
    if not isinstance(name, str) or not is_legal_reference(name):
        reader.wrong(f"{path}.secret", NOT_A_SECRET)
        return SecretRef("")
    reader.secrets.append((f"{path}.secret", name))
    return SecretRef(name)


def _input(reader: ConfigReader, name: str) -> JsonObject | None:
    schema = reader.mapping("inputs")[name]
    if _INPUT_NAME.fullmatch(name) is None:
        reader.wrong(f"inputs.{name}", "must match [A-Za-z_][A-Za-z0-9_]{0,63}")
    if not isinstance(schema, dict):
        reader.wrong(f"inputs.{name}", "must be a JSON Schema, such as {}")
        return None
    reader.schemas.append((f"inputs.{name}", {"type": "object", "properties": {name: schema}}))
    return schema


def _bound(reader: ConfigReader) -> tuple[tuple[str, BoundValue], ...]:
    bound: list[tuple[str, BoundValue]] = []
    for name, value in reader.mapping("bound").items():
        secret = _secret(reader, f"bound.{name}", value)
        if secret is None:
            reader.note_template(f"bound.{name}", value)
        bound.append((name, value if secret is None else secret))
    return tuple(bound)


def _tool(reader: ConfigReader) -> ToolSettings | None:
    tool = reader.section("tool")
    if tool is None:
        reader.wrong("tool", "is required in tool mode")
        return None
    settings = ToolSettings(
        name=tool.text("name"),
        description=tool.text("description"),
        bound=_bound(tool),
        exposed=tool.names("exposed") or (),
    )
    if settings.name and _TOOL_NAME.fullmatch(settings.name) is None:
        tool.wrong("name", "must match [A-Za-z0-9_-]{1,64}")
    elif settings.name.startswith("mcp__"):
        tool.wrong("name", "must not begin with mcp__, as the names of servers' tools do")
    tool.finish()
    return settings


def _check_inputs(reader: ConfigReader, config: HttpRequestConfig) -> None:
    """Every input has exactly one source for its value, and only inputs are bound or exposed."""
    inputs = dict(config.inputs)
    at = "" if config.tool is None else "tool."
    bound = dict(config.bound if config.tool is None else config.tool.bound)
    exposed = () if config.tool is None else config.tool.exposed
    for name in bound:
        if name not in inputs:
            reader.wrong(f"{at}bound.{name}", f"{name!r} is not an input of the node")
    for index, name in enumerate(exposed):
        if name not in inputs:
            reader.wrong(f"{at}exposed.{index}", f"{name!r} is not an input of the node")
        elif name in bound:
            reader.wrong(f"{at}exposed.{index}", f"{name!r} is bound: the model cannot set it too")
    for name, schema in inputs.items():
        if name not in bound and name not in exposed and "default" not in schema:
            ways = "bind it" if config.tool is None else "bind it, expose it"
            reader.wrong(f"inputs.{name}", f"has no value: {ways}, or give its schema a default")
    _check_input_names(reader, inputs, at)


def _check_input_names(reader: ConfigReader, inputs: Mapping[str, JsonObject], at: str) -> None:
    """Placeholders name inputs, and bound values do not refer to inputs."""
    for path, name in reader.input_names:
        if path.startswith(f"{at}bound."):
            reader.wrong(path, "an input's value cannot refer to inputs")
        elif name not in inputs:
            reader.wrong(path, f"there is no input {name!r}" if name else "name an input: {{inputs.NAME}}")


def _check_url(reader: ConfigReader, config: HttpRequestConfig) -> None:
    """The host is fixed if the request carries credentials or is a tool's. Otherwise a model or a
    value could redirect credentials."""
    if not config.url:
        return
    named = next(placeholders(config.url), None)
    origin = _ORIGIN.match(config.url)
    if origin is not None and next(placeholders(origin[0]), None) is None and "{{" not in origin[0]:
        if "@" in origin[0]:
            reader.wrong("url", "must not hold credentials")
        return
    if named is None or (origin is None and not config.url.startswith("{{")):
        reader.wrong("url", "must begin with http:// or https:// and a host")
    elif config.tool is not None or reader.secrets:
        reader.wrong("url", "must have a fixed host, because the node is a tool or sends credentials")


def _mcp_server(mode: NodeMode, reader: ConfigReader) -> McpServerNodeConfig:
    inline = None
    if mode is NodeMode.TOOL and isinstance(reader.config.get("server"), dict):
        defined = reader.section("server")
        inline = None if defined is None else read_inline_server(defined)
        server = "" if inline is None else inline.slug
    else:
        server = reader.text("server")
    if server and not is_legal_slug(server):
        reader.wrong("server", "is not the slug of an MCP server")
    if mode is NodeMode.TOOL:
        return McpServerNodeConfig(server=server, inline=inline, tools=reader.names("tools"))
    arguments = reader.mapping("arguments")
    reader.note_template("arguments", arguments)
    idempotent = reader.flag("idempotent", default=False)
    return McpServerNodeConfig(server=server, call=reader.text("call"), arguments=arguments, idempotent=idempotent)


def _condition(reader: ConfigReader) -> ConditionConfig:
    given = reader.template("input")
    if reader.has("expression"):
        if reader.has("cases"):
            reader.wrong("cases", "cannot be combined with expression")
        only = Case(handle="true", expression=reader.text("expression"))
        return ConditionConfig(cases=(only,), otherwise="false", input=given)
    cases = []
    for case in reader.sections("cases", least=1, most=_MAX_CASES):
        handle, expression = case.text("handle"), case.text("expression")
        _check_handle(case, "handle", handle)
        case.finish()
        cases.append(Case(handle=handle, expression=expression))
    otherwise = reader.text("otherwise", default="else")
    _check_handle(reader, "otherwise", otherwise)
    config = ConditionConfig(cases=tuple(cases), otherwise=otherwise, input=given)
    for handle in sorted({handle for handle in config.handles if config.handles.count(handle) > 1}):
        reader.wrong("cases", f"the handle {handle!r} occurs twice")
    return config


def _check_handle(reader: ConfigReader, path: str, handle: str) -> None:
    if handle and _HANDLE.fullmatch(handle) is None:
        reader.wrong(path, "must match [A-Za-z0-9_-]{1,32}")
