"""Views of MCP registries and their entries."""

from typing import Annotated, TypedDict

from domain.mcp.registry_entry import RegistryEntry, RegistryInput, RegistryOption, Slot
from domain.mcp.server import McpServerKind
from interfaces.http.view_fields import Items, NextCursor


class McpRegistryView(TypedDict):
    """A configured registry."""

    name: Annotated[str, "Its name in the settings."]


class McpRegistryList(TypedDict):
    """The configured registries."""

    data: Annotated[list[McpRegistryView], "The registries, in the order of the settings."]


class RegistryInputView(TypedDict):
    """A value that is chosen when the server is added."""

    name: Annotated[str, "Name of the value, such as env.TOKEN."]
    description: Annotated[str, "The publisher's words."]
    is_required: Annotated[bool, "Whether the server cannot be added without it, unless it has a default."]
    is_secret: Annotated[bool, "Whether the value is a secret."]
    default: Annotated[str | None, "The value if none is given."]
    choices: Annotated[list[str], "The only possible values; empty for any."]


class RegistrySettingView(TypedDict):
    """A value that the publisher wrote, with or without inputs in it."""

    name: Annotated[str, "Where it goes, such as url.url or env.NODE_OPTIONS."]
    value: Annotated[str, "The value, with names of inputs in braces."]


class RegistryOptionView(TypedDict):
    """One way to start or reach the server."""

    kind: Annotated[McpServerKind, "Kind of the server that it becomes."]
    package: Annotated[str | None, "What it is installed from; null for a remote server."]
    version: Annotated[str | None, "Version of the package."]
    settings: Annotated[list[RegistrySettingView], "What the entry sets: URL, environment, headers and arguments."]
    inputs: Annotated[list[RegistryInputView], "The values to choose."]
    remarks: Annotated[list[str], "What to know before adding it."]


class RegistryEntryView(TypedDict):
    """A version of a server in a registry."""

    name: Annotated[str, "Name in the registry, such as com.example/tickets."]
    version: Annotated[str, "Version of the entry."]
    title: Annotated[str, "Title."]
    description: Annotated[str, "The publisher's words."]
    is_deprecated: Annotated[bool, "Whether the publisher advises against it."]
    options: Annotated[list[RegistryOptionView], "Ways to start or reach it here."]
    unavailable: Annotated[list[str], "Why other ways cannot be used here."]


class RegistryEntryPage(TypedDict):
    """A page of entries; `next_cursor` is the registry's, and null on the last page."""

    data: Items[RegistryEntryView]
    next_cursor: NextCursor


class RegistryVersionView(TypedDict):
    """Whether a registry has a newer version of a server's entry."""

    registry_entry: Annotated[str | None, "The server's entry; null for a server from no registry."]
    newer_version: Annotated[str | None, "The latest version, if it is another one."]


def entry_view(entry: RegistryEntry) -> RegistryEntryView:
    return {
        "name": entry.name,
        "version": entry.version,
        "title": entry.title,
        "description": entry.description,
        "is_deprecated": entry.status == "deprecated",
        "options": [_option_view(option) for option in entry.options],
        "unavailable": [*entry.unavailable],
    }


def _option_view(option: RegistryOption) -> RegistryOptionView:
    return {
        "kind": option.kind,
        "package": option.package,
        "version": option.version,
        "settings": [_setting_view(slot) for slot in option.slots if not slot.is_one_input],
        "inputs": [_input_view(one) for one in option.inputs],
        "remarks": [*option.remarks],
    }


def _setting_view(slot: Slot) -> RegistrySettingView:
    flag = "" if slot.flag is None else f"{slot.flag} "
    return {"name": f"{slot.group}.{slot.name}", "value": flag + slot.template}


def _input_view(one: RegistryInput) -> RegistryInputView:
    return {
        "name": one.name,
        "description": one.description,
        "is_required": one.is_required,
        "is_secret": one.is_secret,
        "default": one.default,
        "choices": [*one.choices],
    }
