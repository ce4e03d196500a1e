"""Parses `server.json` documents of MCP registries (schema 2025-12-11). No I/O. Texts are cleaned
and bounded: a registry's publishers are strangers."""

import re
from collections.abc import Iterator

from domain.json_value import JsonObject, JsonValue
from domain.mcp.entry_origin import EntryOrigin
from domain.mcp.registry_entry import (
    RegistryEntry,
    RegistryInput,
    RegistryOption,
    Slot,
    SlotGroup,
    usable,
)
from domain.mcp.server import McpServerKind

OFFICIAL_META = "io.modelcontextprotocol.registry/official"
NAME = re.compile(r"[A-Za-z0-9.-]{1,150}/[A-Za-z0-9._-]{1,100}")
MAX_TEXT = 500
MAX_PARTS = 64
"""Limit of packages, remotes, arguments, variables and headers of an entry, each."""
_KINDS = {"npm": McpServerKind.NPM, "pypi": McpServerKind.PYTHON, "oci": McpServerKind.OCI}
_REMOTES = {"streamable-http": McpServerKind.HTTP, "sse": McpServerKind.SSE}
_SWITCHES = frozenset({"-y", "--yes", "-q", "--quiet", "-i", "--interactive", "--rm", "--init", "run"})
_ASKS = frozenset(
    {"value", "default", "valueHint", "choices", "variables", "format", "placeholder", "isSecret", "isRepeated"}
)
"""A named argument with none of these is a switch without a value."""
_ENVIRONMENT = frozenset({"-e", "--env"})


def read_entry_document(document: object) -> RegistryEntry | None:
    """The entry of a registry's answer, `{server, _meta}`. None for one without a usable name and
    version, such as one that a server could not keep as its origin."""
    server, meta = _object(document, "server"), _object(_object(document, "_meta"), OFFICIAL_META)
    name, version = _text(server, "name"), _text(server, "version")
    if not NAME.fullmatch(name) or not EntryOrigin.can_name(name, version):
        return None
    options: list[RegistryOption] = []
    unavailable: list[str] = []
    for found in (*map(_package, _parts(server, "packages")), *map(_remote, _parts(server, "remotes"))):
        option = usable(found) if isinstance(found, RegistryOption) else found
        if isinstance(option, RegistryOption):
            options.append(option)
        else:
            unavailable.append(option)
    return RegistryEntry(
        name=name,
        version=version,
        title=_text(server, "title") or name,
        description=_text(server, "description"),
        status=_text(meta, "status") or "active",
        options=tuple(options),
        unavailable=tuple(unavailable),
    )


def _package(package: JsonObject) -> RegistryOption | str:
    type_, identifier, version = (_text(package, key) for key in ("registryType", "identifier", "version"))
    kind = _KINDS.get(type_)
    if kind is None:
        return f"Packages of the type {type_ or 'unknown'} cannot be installed here."
    if _text(_object(package, "transport"), "type") != "stdio":
        return f"{kind}: the package listens on a port; only servers over stdio are started here."
    remarks = []
    if base := _text(package, "registryBaseUrl"):
        remarks.append(
            f"The entry names the package registry {base}; packages come from the one that is configured here."
        )
    if _text(package, "fileSha256"):
        remarks.append("The entry's hash of the package file is not compared; the package registry's hashes are.")
    runtime = _runtime(package)
    if runtime is None:
        return f"{kind}: the package needs arguments for the program that starts it, which are not supported."
    arguments = [_argument(one, number) for number, one in enumerate(_parts(package, "packageArguments"))]
    variables = [_key_value(SlotGroup.ENV, one) for one in _parts(package, "environmentVariables")]
    is_pinned = kind is McpServerKind.OCI and (":" in identifier.rpartition("/")[2] or "@" in identifier)
    return RegistryOption(
        kind=kind,
        package=identifier,
        version=None if is_pinned else version or None,
        slots=tuple(slot for slot in (*arguments, *runtime, *variables) if slot is not None),
        remarks=tuple(remarks),
    )


def _remote(remote: JsonObject) -> RegistryOption | str:
    kind, url = _REMOTES.get(_text(remote, "type")), _text(remote, "url")
    if kind is None or not url:
        return f"Remote servers of the type {_text(remote, 'type') or 'unknown'} cannot be reached."
    address = _slot(SlotGroup.URL, "url", {"value": url, "variables": _object(remote, "variables")})
    headers = [_key_value(SlotGroup.HEADERS, one) for one in _parts(remote, "headers")]
    return RegistryOption(kind=kind, slots=tuple(slot for slot in (address, *headers) if slot is not None))


def _runtime(package: JsonObject) -> list[Slot] | None:
    """Environment variables that arguments of a container engine set; None for arguments with
    another effect."""
    slots: list[Slot] = []
    for one in _parts(package, "runtimeArguments"):
        flag = _text(one, "name") or _text(one, "value")
        name, is_env, value = _text(one, "value").partition("=")
        if flag in _ENVIRONMENT and is_env:
            slots.append(_slot(SlotGroup.ENV, name, {**one, "value": value}))
        elif flag not in _SWITCHES:
            return None
    return slots


def _argument(one: JsonObject, number: int) -> Slot | None:
    flag = _text(one, "name") if one.get("type") == "named" else None
    name = (flag or _text(one, "valueHint") or str(number)).lstrip("-")
    if flag and _ASKS.isdisjoint(one):
        # A switch without a value.
        return Slot(group=SlotGroup.ARGS, name=name, template=flag) if one.get("isRequired") is True else None
    return _slot(SlotGroup.ARGS, name, one, flag=flag)


def _key_value(group: SlotGroup, one: JsonObject) -> Slot | None:
    name = _text(one, "name")
    return _slot(group, name, one) if name else None


def _slot(group: SlotGroup, name: str, one: JsonObject, *, flag: str | None = None) -> Slot:
    """A fixed text, a text with variables, or one input."""
    own, value = f"{group}.{name}", _text(one, "value", MAX_TEXT * 4)
    if not value:
        return Slot(group=group, name=name, template=f"{{{own}}}", inputs=(_input(own, one),), flag=flag)
    inputs, template = [], value
    for key, variable in list(_object(one, "variables").items())[:MAX_PARTS]:
        if isinstance(variable, dict) and f"{{{key}}}" in template:
            inputs.append(_input(f"{own}.{_printable(key)}", variable))
            template = template.replace(f"{{{key}}}", f"{{{inputs[-1].name}}}")
    return Slot(group=group, name=name, template=template, inputs=tuple(inputs), flag=flag)


def _input(name: str, one: JsonObject) -> RegistryInput:
    default, choices = one.get("default") or one.get("value"), one.get("choices")
    return RegistryInput(
        name=name,
        description=_text(one, "description"),
        is_required=one.get("isRequired") is True,
        is_secret=one.get("isSecret") is True,
        default=_printable(default)[:MAX_TEXT] if isinstance(default, str) and default else None,
        choices=tuple(_printable(choice)[:MAX_TEXT] for choice in _strings(choices)),
    )


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        yield from (one for one in value[:MAX_PARTS] if isinstance(one, str))


def _parts(document: JsonObject, key: str) -> list[JsonObject]:
    found = document.get(key)
    return [one for one in found[:MAX_PARTS] if isinstance(one, dict)] if isinstance(found, list) else []


def _object(document: object, key: str) -> JsonObject:
    found = document.get(key) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _text(document: JsonObject, key: str, limit: int = MAX_TEXT) -> str:
    found = document.get(key)
    return " ".join(_printable(found).split())[:limit] if isinstance(found, str) else ""


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)
