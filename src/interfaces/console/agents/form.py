"""The form of an agent: its fields from an agent, the API's body from its fields, and the field
of each fault."""

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import cast

from domain.agents.agent import AgentSettings
from domain.errors import invalid
from domain.json_value import JsonObject, JsonValue
from domain.runs.lane import Lane
from interfaces.console import policy_rows
from interfaces.console.agents.settings_fields import PREFIX, settings_body, settings_values
from interfaces.console.form_values import (
    LIMITS,
    FormValues,
    allowlist_values,
    fields_of,
    joined,
    json_text,
    limit_values,
    text,
)
from interfaces.http.agents.views import AgentView

TOOLS, SERVERS, CANARIES = "tools.", "servers.", "canary"
_TEXTS, _NAMES = (*fields_of(AgentSettings, str), *fields_of(AgentSettings, Lane)), ("name", "model")
_LINES = tuple(name for name in fields_of(AgentSettings, tuple[str, ...]) if name not in ("tools", "mcp_servers"))
_NUMBERS, _TICKS = fields_of(AgentSettings, Decimal | None), fields_of(AgentSettings, bool)
_WHOLE = fields_of(AgentSettings, int | None)
_OPTIONAL = fields_of(AgentSettings, str | None)
_JSON = fields_of(AgentSettings, JsonObject | None)
_PLAIN = frozenset(field.name for field in fields(AgentSettings)) - {"limits", "tool_policies", "canary_tokens", PREFIX}
"""Fields of the settings by input type. Fields that the template does not show are not sent."""
NEW_AGENT = {"enabled": "on", "allowlist": "inherit", "lane": Lane.NORMAL.value}
"""Initial values of the form of a new agent."""


def agent_values(view: AgentView) -> dict[str, str]:
    """The fields of an agent. Canary tokens are never read back."""
    shown = cast("Mapping[str, JsonValue]", view)
    values = {name: text(shown[name]) for name in (*_TEXTS, *_NUMBERS, *_WHOLE, *_OPTIONAL)}
    values |= {name: json_text(shown[name]) for name in _JSON}
    values |= {"version": str(view["version"])}
    values |= {name: joined(cast("list[str]", shown[name])) for name in _LINES}
    values |= {f"{TOOLS}{name}": "on" for name in view["tools"]}
    values |= {f"{SERVERS}{slug}": "on" for slug in view["mcp_servers"]}
    values |= allowlist_values(view["tool_allowlist"]) | limit_values(dict(view["limits"]))
    values |= settings_values(cast("Mapping[str, JsonValue]", view["model_settings"]))
    values |= policy_rows.policy_values(view["tool_policies"])
    values |= {name: "on" for name in _TICKS if shown[name]}
    for index, token in enumerate(view["canary_tokens"]):
        row = f"{CANARIES}.c{index}"
        values |= {f"{row}.id": token["id"], f"{row}.known": "yes"}
        if token["per_run"]:
            values[f"{row}.per_run"] = "on"
    return values


def agent_body(form: FormValues) -> JsonObject:
    """The API's body. Raises INVALID with unreadable fields."""
    body = draft_body(form)
    body |= {name: form[name] for name in _TEXTS if form.has(name)}
    body |= {name: form[name].strip() for name in _NAMES}
    body |= {name: form.lines(name) for name in _LINES if form.has(name)}
    body |= {name: form.number(name) for name in _NUMBERS if form.has(name)}
    body |= {name: form.whole(name) for name in _WHOLE if form.has(name)}
    body |= {name: form.json_object(name) for name in _JSON if form.has(name)}
    body |= {
        "limits": form.limits(),
        "model_settings": settings_body(form),
        "canary_tokens": _canaries(form),
        **{name: form.has(name) for name in _TICKS},
    }
    if form.wrong:
        raise invalid("form_invalid", "The form has invalid fields.", *form.wrong)
    return body


def draft_body(form: FormValues) -> dict[str, JsonValue]:
    """The settings that its tools depend on; unreadable fields are in `form.wrong`."""
    return {
        "name": "draft",
        "model": "draft:draft",
        "tools": form.ticked(TOOLS),
        "mcp_servers": form.ticked(SERVERS),
        "agents": form.lines("agents"),
        "tool_allowlist": form.allowlist(),
        **{name: form[name].strip() or None for name in _OPTIONAL if form.has(name)},
        "tool_policies": policy_rows.policies_body(form),
    }


def agent_field(form: FormValues, path: str) -> str | None:
    """The field of a path in the body, or None."""
    first, _, rest = path.partition(".")
    if first == PREFIX:
        return path.rsplit(".", 1)[0] if path.count(".") > 1 else path
    if first in _PLAIN or (first == "limits" and rest in LIMITS):
        return path if first == "limits" else "allowlist_entries" if first == "tool_allowlist" else first
    if first == policy_rows.PREFIX and path.count(".") > 1:
        return path  # reported by reading the form
    if first == "canary_tokens":
        rows = form.rows(CANARIES)
        index, _, name = rest.partition(".")
        if index.isdecimal() and int(index) < len(rows):
            return f"{CANARIES}.{rows[int(index)]}.{'id' if name == 'id' else 'token'}"
    return policy_rows.rule_field(form, path)


def _canaries(form: FormValues) -> list[JsonValue]:
    """A token given by id alone stays unchanged."""
    tokens: list[JsonValue] = []
    for row in form.rows(CANARIES):
        name, token = form[f"{CANARIES}.{row}.id"].strip(), form[f"{CANARIES}.{row}.token"]
        entry: dict[str, JsonValue] = {}
        if name:
            entry["id"] = name
        if form.has(f"{CANARIES}.{row}.per_run"):
            entry["per_run"] = True
        if token:
            entry["token"] = token
        # Empty rows stay, so that faults match rows by number; the API reports what is missing.
        tokens.append(entry)
    return tokens


def merged(mine: Mapping[str, JsonValue], base: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]) -> JsonObject:
    """My changes to `base`, applied to their version."""
    return {name: mine[name] if mine[name] != base[name] else theirs[name] for name in mine}


def both_changed(
    mine: Mapping[str, JsonValue], base: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]
) -> tuple[str, ...]:
    """The fields that both sides changed differently."""
    return tuple(
        name for name in mine if mine[name] != base[name] and theirs[name] != base[name] and mine[name] != theirs[name]
    )
