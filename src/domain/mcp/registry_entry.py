"""Entries of MCP registries: what may be registered of them, and which inputs that takes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from domain.errors import ServiceError, Violation, invalid
from domain.mcp.packages import is_file
from domain.mcp.server import McpServerConfig, McpServerKind, default_isolation
from domain.secrets.names import references_in
from domain.secrets.secret import SecretRef, SecretValue

_SECRET = "{secret:"
"""The beginning of a reference, also of one whose name or dollar sign is in another text."""


class SlotGroup(StrEnum):
    """The setting of a server that a slot belongs to."""

    ENV = "env"
    HEADERS = "headers"
    ARGS = "args"
    URL = "url"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryInput:
    """A value that is chosen when the server is added. `name` is unique in its option."""

    name: str
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One value of the configuration. `template` is a text in which each input's name in braces
    stands for its value; an input that is not given leaves the slot out. `flag` goes before the
    value of an argument."""

    group: SlotGroup
    name: str
    template: str
    inputs: tuple[RegistryInput, ...] = ()
    flag: str | None = None

    @property
    def is_one_input(self) -> bool:
        """Whether the entry says nothing of the value."""
        return len(self.inputs) == 1 and self.template == f"{{{self.inputs[0].name}}}" and self.flag is None

    @property
    def texts(self) -> tuple[str, ...]:
        """What the publisher wrote of the value."""
        return self.template, *(text for one in self.inputs for text in (one.default or "", *one.choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOption:
    """One way to start or reach the server. The publisher's own texts never refer to secrets of the
    organization: only an input that is given as a secret does."""

    kind: McpServerKind
    package: str | None = None
    version: str | None = None
    slots: tuple[Slot, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[RegistryInput, ...]:
        return tuple(one for slot in self.slots for one in slot.inputs)

    def config(self, slug: str, given: Mapping[str, SecretValue]) -> McpServerConfig:
        """The server with these inputs. Raises INVALID `registry_inputs_invalid`,
        `mcp_server_invalid`."""
        known = {one.name for one in self.inputs}
        wrong = [Violation(path=f"inputs.{name}", message="is no input of the entry") for name in given.keys() - known]
        filled = _Filled(given=given, wrong=wrong)
        for slot in self.slots:
            filled.fill(slot)
        if wrong:
            raise invalid("registry_inputs_invalid", "The inputs do not fit the entry.", *wrong)
        return McpServerConfig(
            slug=slug,
            kind=self.kind,
            package=self.package,
            version=self.version,
            args=tuple(filled.args),
            env=filled.env,
            url=filled.url,
            headers=filled.headers,
            isolation=default_isolation(self.kind),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """A version of a server in a registry. `unavailable` says why other ways to start it cannot be
    used here."""

    name: str
    version: str
    title: str
    description: str
    status: str
    options: tuple[RegistryOption, ...] = ()
    unavailable: tuple[str, ...] = ()

    def option(self, number: int) -> RegistryOption:
        """Raises INVALID `registry_option_invalid`."""
        if 0 <= number < len(self.options):
            return self.options[number]
        reasons = " ".join(self.unavailable) or "The entry has no such option."
        raise invalid("registry_option_invalid", reasons if not self.options else "The entry has no such option.")


@dataclass(slots=True, kw_only=True)
class _Filled:
    given: Mapping[str, SecretValue]
    wrong: list[Violation]
    env: dict[str, SecretValue] = field(default_factory=dict)
    headers: dict[str, SecretValue] = field(default_factory=dict)
    args: list[str] = field(default_factory=list)
    url: str | None = None

    def fill(self, slot: Slot) -> None:
        value = self._value(slot)
        if value is None:
            return
        match slot.group:
            case SlotGroup.ENV:
                self.env[slot.name] = value
            case SlotGroup.HEADERS:
                self.headers[slot.name] = value
            case SlotGroup.ARGS:
                flag = slot.flag or ""
                self.args += (
                    [f"{flag}={value}"] if flag.startswith("--") else [one for one in (flag, str(value)) if one]
                )
            case SlotGroup.URL:
                self.url = str(value)

    def _value(self, slot: Slot) -> SecretValue | None:
        text = slot.template
        for one in slot.inputs:
            value = self.given.get(one.name, one.default)
            if value is None:
                if one.is_required:
                    self._refuse(one, "is required")
                return None
            if one.choices and value not in one.choices:
                self._refuse(one, f"must be one of {', '.join(one.choices)}")
            if isinstance(value, SecretRef):
                if slot.group is SlotGroup.URL:
                    value = f"${{secret:{value.name}}}"
                elif slot.group is not SlotGroup.ARGS and slot.template == f"{{{one.name}}}":
                    return value
                else:
                    self._refuse(one, "must be a text here")
                    return None
            elif one.is_secret and slot.group is SlotGroup.URL:
                self._refuse(one, "is part of the URL: name a secret that holds it")
            text = text.replace(f"{{{one.name}}}", value)
        given = {value.name for one in slot.inputs if isinstance(value := self.given.get(one.name), SecretRef)}
        if not given.issuperset(references_in(text)):
            self.wrong.append(
                Violation(path=f"{slot.group}.{slot.name}", message="refers to a secret that was not given")
            )
        return text

    def _refuse(self, one: RegistryInput, message: str) -> None:
        self.wrong.append(Violation(path=f"inputs.{one.name}", message=message))


def usable(option: RegistryOption) -> RegistryOption | str:
    """The option without optional arguments that hold secrets, or why it cannot be used: arguments
    are never secret, and a publisher has no say in where the organization's secrets go."""
    if any(_SECRET in text for slot in option.slots for text in slot.texts):
        return f"{option.kind}: the entry refers to secrets of the organization by itself."
    if option.package is not None and (reason := _why_not(option)):
        return f"{option.kind}: {reason}"
    secret = [slot for slot in option.slots if slot.group is SlotGroup.ARGS and any(i.is_secret for i in slot.inputs)]
    if any(one.is_required for slot in secret for one in slot.inputs):
        return f"{option.kind}: an argument is a secret, and arguments of servers are not stored as secrets."
    return replace(option, slots=tuple(slot for slot in option.slots if slot not in secret))


def _why_not(option: RegistryOption) -> str:
    """Why no server could have the package; empty for one that can."""
    if is_file(option.package or ""):
        return "the package is a file of this machine, which a publisher cannot choose."
    try:
        McpServerConfig(slug="entry", kind=option.kind, package=option.package, version=option.version)
    except ServiceError as error:
        return "; ".join(f"the {one.path} {one.message}" for one in error.violations) + "."
    return ""
