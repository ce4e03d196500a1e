"""Agents as files: reading one, and applying it to the service."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from domain.agents.agent import AgentSettings
from domain.json_value import JsonObject, JsonValue
from domain.policy.rule_json import policies_to_json
from domain.policy.rules import ToolPolicies
from domain.runs.model_settings import ModelSettings
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.definition_file import load_definition
from interfaces.cli.failures import ApiProblem, UnexpectedAnswer

SUFFIXES = (".yaml", ".yml", ".json")


def _as_json(default: object) -> JsonValue:
    match default:
        case ():
            return []
        case ModelSettings() if not default.stated:
            return {}
        case ToolPolicies():
            return policies_to_json(default)
        case None | bool() | str():
            return default
        case _:
            raise TypeError(f"no JSON is known for the default {default!r}")


_UNSET: Mapping[str, JsonValue] = {
    field.name: _as_json(field.default)
    for field in fields(AgentSettings)
    if field.default is not MISSING and field.name != "limits"
}
"""Defaults of fields that a file omits. Limits are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedAgent:
    """The stored agent, and the action: created, updated or unchanged."""

    agent: JsonObject
    done: str


def is_agent_file(name_or_file: str) -> bool:
    """Whether `--agent` is a file; agents' names rarely have such a suffix."""
    return name_or_file.endswith(SUFFIXES)


def load_agent_file(path: Path) -> JsonObject:
    """The agent in a YAML or JSON file. Raises BadUsage naming the file and the position of a
    syntax error."""
    return load_definition(path, what="agent", needs="name and model")


async def apply_agent(api: ServiceApi, wanted: JsonObject) -> AppliedAgent:
    """Create the agent, or update it to exactly `wanted`: absent fields return to their
    defaults."""
    path = path_to("agents", str(wanted["name"]))
    try:
        present = await api.get(path)
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        return AppliedAgent(agent=await api.post(path_to("agents"), wanted), done="created")
    return await change_agent(api, present, _whole(wanted, present))


async def change_agent(api: ServiceApi, present: JsonObject, changes: JsonObject) -> AppliedAgent:
    """Change an agent that is still at the version of `present`."""
    identifier, version = present.get("id"), present.get("version")
    if not isinstance(identifier, str) or not isinstance(version, int):
        raise UnexpectedAnswer("an agent without id and version")
    changed = await api.patch(path_to("agents", identifier), changes, headers={"If-Match": f'"{version}"'})
    return AppliedAgent(agent=changed, done="unchanged" if changed.get("version") == version else "updated")


def _whole(wanted: JsonObject, present: JsonObject) -> JsonObject:
    unset: JsonObject = {name: value for name, value in _UNSET.items() if name in present}
    whole = unset | wanted
    limits, present_limits = wanted.get("limits", {}), present.get("limits")
    if isinstance(limits, dict) and isinstance(present_limits, dict):
        unlimited: JsonObject = dict.fromkeys(present_limits)
        whole["limits"] = unlimited | limits
    return whole
