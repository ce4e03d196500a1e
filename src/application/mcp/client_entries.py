"""Parses the `mcpServers` entries of desktop clients into server configurations. Used by the
import. No I/O."""

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from typing import cast

from application.mcp.container_entries import PROGRAMS, container_start
from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue
from domain.mcp.network import ServerNetwork
from domain.mcp.packages import WrongPackageError, npm_package, python_package
from domain.mcp.server import McpServerConfig, McpServerKind, default_isolation

_SLUG_LIMIT = 32
_KNOWN = frozenset(
    {
        "command",
        "args",
        "env",
        "url",
        "serverUrl",
        "httpUrl",
        "headers",
        "type",
        "transport",
        "disabled",
        "enabled",
        "source",
    }
)
_SSE_TYPES = frozenset({"sse"})
_STARTED_TYPES = frozenset({"stdio", "local"})
_NPX_SWITCHES = frozenset({"-y", "--yes", "-q", "--quiet"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    kind: McpServerKind
    package: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    network: ServerNetwork = ServerNetwork.FULL


@dataclass(slots=True, kw_only=True)
class ReadEntry:
    """The parsed server, and remarks about unsupported parts."""

    config: McpServerConfig
    remarks: list[str] = field(default_factory=list)


def slug_for(name: str, taken: set[str]) -> str:
    """A valid slug similar to the name and not yet taken."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_SLUG_LIMIT].rstrip("-") or "server"
    slug, number = base, 1
    while slug in taken:
        number += 1
        suffix = f"-{number}"
        slug = base[: _SLUG_LIMIT - len(suffix)].rstrip("-") + suffix
    return slug


def read_entry(slug: str, entry: JsonValue) -> ReadEntry:
    """Parse an entry. Raises INVALID `mcp_server_invalid` with the violations."""
    if not isinstance(entry, dict):
        raise _wrong("", "must be a JSON object")
    entry = _flat(entry)
    remarks = [f"{name} is not supported and was left out" for name in sorted(entry.keys() - _KNOWN)]
    enabled = entry.get("disabled") is not True and entry.get("enabled") is not False
    streamable = _text(entry, "httpUrl")
    url = streamable or _text(entry, "url") or _text(entry, "serverUrl")
    command = _text(entry, "command")
    transport = (_text(entry, "type") or _text(entry, "transport") or "").lower()
    if url is not None and command is not None:
        raise _wrong("url", "stands beside a command; one of them is needed")
    if url is not None and transport not in _STARTED_TYPES:
        is_legacy = transport in _SSE_TYPES or (not transport and url.rstrip("/").endswith("/sse"))
        is_legacy = is_legacy and streamable is None
        kind = McpServerKind.SSE if is_legacy else McpServerKind.HTTP
        headers = _texts(entry, "headers")
        remarks += _placeholders("headers", headers)
        config = McpServerConfig(
            slug=slug, kind=kind, url=url, headers=headers, isolation=default_isolation(kind), enabled=enabled
        )
        return ReadEntry(config=config, remarks=remarks)
    if command is None:
        raise _wrong("command", "is missing, and there is no url either")
    args = _list(entry, "args")
    start = start_of(command, args)
    env = {**start.env, **_texts(entry, "env")}
    remarks += _placeholders("env", env)
    remarks += ["args hold a placeholder" for arg in start.args if _holds_placeholder(arg)][:1]
    config = McpServerConfig(
        slug=slug,
        kind=start.kind,
        package=start.package,
        command=start.command,
        args=start.args,
        env=env,
        network=start.network,
        isolation=default_isolation(start.kind),
        enabled=enabled,
    )
    return ReadEntry(config=config, remarks=remarks)


def _flat(entry: JsonObject) -> JsonObject:
    """An editor has `{command: {path, args, env}}`."""
    command = entry.get("command")
    if not isinstance(command, dict):
        return entry
    return {
        **entry,
        **{name: command[name] for name in ("args", "env") if name in command},
        "command": command.get("path"),
    }


def start_of(command: str, args: tuple[str, ...]) -> _Start:
    """Map npx, uvx and pipx to installed packages, docker and podman to images; other commands run
    in place."""
    program, rest = _program(command), args
    if program == "cmd" and len(args) > 1 and args[0].lower() == "/c":
        program, rest = _program(args[1]), args[2:]
    found = None
    if program == "npx":
        found = _of_npx(rest)
    elif program == "uvx":
        found = _of_uvx(rest)
    elif program == "uv" and rest[:2] == ("tool", "run"):
        found = _of_uvx(rest[2:])
    elif program == "pipx" and rest[:1] == ("run",):
        found = _of_pipx(rest[1:])
    elif program in PROGRAMS and (started := container_start(rest)) is not None:
        found = _Start(
            kind=McpServerKind.OCI,
            package=started.image,
            args=started.args,
            env=started.env,
            network=started.network,
        )
    return found or _Start(kind=McpServerKind.CUSTOM, command=command, args=args)


def _program(command: str) -> str:
    """`npx` for `/usr/bin/npx` and `C:\\…\\npx.cmd`."""
    name = PureWindowsPath(command).name if "\\" in command else PurePosixPath(command).name
    return re.sub(r"\.(exe|cmd|bat)$", "", name, flags=re.IGNORECASE).lower()


def _of_npx(args: tuple[str, ...]) -> _Start | None:
    rest, package = list(args), None
    while rest and rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        if option in ("-p", "--package") and package is None and (value or rest):
            package = value or rest.pop(0)
        elif option == "--":
            break
        elif option not in _NPX_SWITCHES:
            return None
    if not rest:
        return None
    command = None if package is None else rest[0]
    package = rest[0] if package is None else package
    try:
        if npm_package(package, None).name is None:
            return None
    except WrongPackageError:
        return None
    # The installation would pin "latest" anyway, and the word suggests updates.
    package = package.removesuffix("@latest")
    return _Start(kind=McpServerKind.NPM, package=package, command=command, args=tuple(rest[1:]))


def _of_uvx(args: tuple[str, ...]) -> _Start | None:
    rest, source, beside = list(args), None, []
    while rest and rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        if option not in ("--from", "--with") or not (value or rest):
            return None
        value = value or rest.pop(0)
        if option == "--from":
            source = value
        else:
            beside += value.split(",") if not re.search(r"[<>=~!]", value) else [value]
    return _of_tool(rest, source, beside)


def _of_pipx(args: tuple[str, ...]) -> _Start | None:
    rest, source = list(args), None
    while rest and rest[0].startswith("-"):
        option, _, value = rest.pop(0).partition("=")
        if option != "--spec" or not (value or rest):
            return None
        source = value or rest.pop(0)
    return _of_tool(rest, source, [])


def _of_tool(rest: list[str], source: str | None, beside: list[str]) -> _Start | None:
    if not rest:
        return None
    requirement = rest[0] if source is None else source
    name, at, version = requirement.partition("@")
    if at:
        requirement = name if version == "latest" else f"{name}=={version}"
    package = " ".join([requirement.replace(" ", ""), *beside])
    try:
        if python_package(package, None).name is None:
            return None
    except WrongPackageError:
        return None
    command = None if source is None else rest[0]
    return _Start(kind=McpServerKind.PYTHON, package=package, command=command, args=tuple(rest[1:]))


def _text(entry: JsonObject, name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, "must be a string")
    return value or None


def _list(entry: JsonObject, name: str) -> tuple[str, ...]:
    value = entry.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _wrong(name, "must be a list of strings")
    return tuple(cast("list[str]", value))


def _texts(entry: JsonObject, name: str) -> dict[str, str]:
    value = entry.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str | int | float) for item in value.values()):
        raise _wrong(name, "must be an object of strings")
    return {key: item if isinstance(item, str) else _shown(item) for key, item in value.items()}


def _shown(value: JsonValue) -> str:
    """Numbers and booleans in shell notation."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _placeholders(group: str, values: dict[str, str]) -> list[str]:
    """Values with placeholders that the client would have filled in."""
    return [
        f"{group}.{name} holds a placeholder; set its value"
        for name, value in values.items()
        if _holds_placeholder(value)
    ]


def _holds_placeholder(value: str) -> bool:
    opening = value.find("${")
    return opening >= 0 and value.find("}", opening) >= 0


def _wrong(path: str, message: str) -> Exception:
    return invalid("mcp_server_invalid", "The entry is not valid.", Violation(path=path, message=message))
