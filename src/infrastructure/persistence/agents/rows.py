"""Agents and their versions to rows and back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, cast

from sqlalchemy import Connection, Select, bindparam, select

from domain.agents.agent import Agent, AgentConfig
from domain.ids import AgentId, OrganizationId
from domain.json_value import JsonObject, JsonValue
from domain.policy.canary import CanaryToken
from domain.policy.rule_json import policies_from_json, policies_to_json
from domain.tools.capabilities import ToolType
from infrastructure.persistence.columns.limits_json import limits_from_json, limits_to_json
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import agent, agent_version
from infrastructure.runtime.json_text import decode, encode

select_version: Select[Any] = select(
    agent.c.id,
    agent.c.organization_id,
    agent.c.created_at,
    agent_version.c.version,
    agent_version.c.config,
    agent_version.c.canary_tokens,
    agent_version.c.updated_at,
).join_from(agent, agent_version, agent_version.c.agent_id == agent.c.id)

select_newest = select_version.where(agent_version.c.version == agent.c.version)
_newest_of_any = Prepared(select_newest.where(agent.c.id == bindparam("agent_id")))


def newest_version(connection: Connection, agent_id: AgentId, box: SecretBox) -> Agent:
    """The agent at its newest version, even if it was deleted. Raises ValueError if it never was."""
    return ask_newest_version(connection, agent_id, box)()


def ask_newest_version(connection: Connection, agent_id: AgentId, box: SecretBox) -> Callable[[], Agent]:
    """The same, to be read in the next stage."""
    rows = _newest_of_any.ask_rows(connection, {"agent_id": agent_id})

    def read() -> Agent:
        (row,) = rows()
        return agent_of(row, box)

    return read


def version_row(stored: Agent, box: SecretBox) -> dict[str, object]:
    """Columns of `agent_version`."""
    return {
        "agent_id": stored.id,
        "version": stored.version,
        "organization_id": stored.organization_id,
        "config": _config_to_json(stored.config),
        "canary_tokens": _sealed(stored.config.canary_tokens, box),
        "updated_at": stored.updated_at,
    }


def agent_of(row: AnyRow, box: SecretBox) -> Agent:
    """From a row of `select_version`."""
    return Agent(
        id=AgentId(row.id),
        organization_id=OrganizationId(row.organization_id),
        version=row.version,
        config=_config_from_json(row.config, _unsealed(row.canary_tokens, box)),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _sealed(tokens: tuple[CanaryToken, ...], box: SecretBox) -> bytes | None:
    if not tokens:
        return None
    entries: list[JsonValue] = [{"id": token.id, "secret": token.secret, "per_run": token.per_run} for token in tokens]
    return box.encrypt(encode(entries).encode())


def _unsealed(sealed: bytes | None, box: SecretBox) -> tuple[CanaryToken, ...]:
    if sealed is None:
        return ()
    entries = cast("list[dict[str, Any]]", decode(box.decrypt(sealed).decode()))
    return tuple(CanaryToken(id=entry["id"], secret=entry["secret"], per_run=entry["per_run"]) for entry in entries)


def _config_to_json(config: AgentConfig) -> JsonObject:
    """Everything but the canary tokens."""
    return {
        "name": config.name,
        "model": config.model,
        "fallback_models": list(config.fallback_models),
        "instructions": config.instructions,
        "tools": [kind.value for kind in config.tools],
        "mcp_servers": list(config.mcp_servers),
        "tool_allowlist": None if config.tool_allowlist is None else list(config.tool_allowlist),
        "tool_policies": policies_to_json(config.tool_policies),
        "limits": limits_to_json(config.limits),
        "daily_budget_usd": None if config.daily_budget_usd is None else str(config.daily_budget_usd),
        "enabled": config.enabled,
        "description": config.description,
        "agents": list(config.agents),
    }


def _config_from_json(stored: JsonValue, canary_tokens: tuple[CanaryToken, ...]) -> AgentConfig:
    config = cast("dict[str, Any]", stored)
    allowlist = config["tool_allowlist"]
    return AgentConfig(
        name=config["name"],
        model=config["model"],
        fallback_models=tuple(config["fallback_models"]),
        instructions=config["instructions"],
        tools=tuple(ToolType(kind) for kind in config["tools"]),
        mcp_servers=tuple(config["mcp_servers"]),
        tool_allowlist=None if allowlist is None else tuple(allowlist),
        # Agents stored before there were policies have none.
        tool_policies=policies_from_json(config.get("tool_policies", {})),
        limits=limits_from_json(config["limits"]),
        daily_budget_usd=None if (budget := config.get("daily_budget_usd")) is None else Decimal(budget),
        canary_tokens=canary_tokens,
        enabled=config["enabled"],
        # Nor did agents always have a description, and agents of their own.
        description=config.get("description", ""),
        agents=tuple(config.get("agents", ())),
    )
