"""Agents and their versions to rows and back."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from domain.agents.agent import Agent, AgentConfig
from domain.ids import AgentId, OrganizationId
from domain.policy.canary import CanaryToken
from infrastructure.persistence.columns.fields import json_codec, json_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import agent, agent_version
from infrastructure.runtime.json_text import decode, encode

_config = json_fields(AgentConfig, without={"canary_tokens"})
_write_tokens, _read_tokens = json_codec(tuple[CanaryToken, ...])

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


def ask_newest_version(connection: Connection, agent_id: AgentId, box: SecretBox) -> Callable[[], Agent]:
    """Reads the agent at its newest version, also a deleted one, in the next stage. Raises
    ValueError if it never existed."""
    rows = _newest_of_any.ask(connection, {"agent_id": agent_id})

    def read() -> Agent:
        (row,) = rows.typed()
        return agent_of(row, box)

    return read


def version_row(stored: Agent, box: SecretBox) -> dict[str, object]:
    return {
        "agent_id": stored.id,
        "version": stored.version,
        "organization_id": stored.organization_id,
        "config": _config.write(stored.config),
        "canary_tokens": _sealed(stored.config.canary_tokens, box),
        "updated_at": stored.updated_at,
    }


def agent_of(row: AnyRow, box: SecretBox) -> Agent:
    return Agent(
        id=AgentId(row.id),
        organization_id=OrganizationId(row.organization_id),
        version=row.version,
        config=_config.read(row.config, canary_tokens=_unsealed(row.canary_tokens, box)),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _sealed(tokens: tuple[CanaryToken, ...], box: SecretBox) -> bytes | None:
    return box.encrypt(encode(_write_tokens(tokens)).encode()) if tokens else None


def _unsealed(sealed: bytes | None, box: SecretBox) -> tuple[CanaryToken, ...]:
    tokens: tuple[CanaryToken, ...] = () if sealed is None else _read_tokens(decode(box.decrypt(sealed).decode()))
    return tokens
