"""Agents and their versions in SQL."""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select, update

from application.agents.ports import AgentName
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.ids import AgentId, OrganizationId
from domain.teams import Teams
from infrastructure.persistence.agents.rows import agent_of, select_newest, select_version, version_row
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow, decode_cursor, encode_cursor, newest_page, page_of
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database, duplicates_as
from infrastructure.persistence.identity.group_owners import require_group
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import agent, agent_version, run
from infrastructure.persistence.threads.queue import is_unfinished

_of_organization = agent.c.organization_id == bindparam("organization_id")
_in_use = agent.c.deleted_at.is_(None)
_this = agent.c.id == bindparam("agent_id")

_get = select_newest.where(_of_organization, _this, _in_use)
_find = select_newest.where(_of_organization, agent.c.name == bindparam("name"), _in_use)
_names = select(agent.c.id, agent.c.name, agent.c.deleted_at).where(
    _of_organization, agent.c.id.in_(bindparam("ids", expanding=True))
)
_lock = select(agent.c.version, agent.c.team).where(_of_organization, _this, _in_use).with_for_update(key_share=True)
_move = (
    update(agent)
    .where(_this)
    .values(
        name=bindparam("new_name"),
        version=bindparam("new_version"),
        max_running=bindparam("new_max_running"),
        team=bindparam("new_team"),
    )
)
_delete = update(agent).where(_this).values(deleted_at=bindparam("moment"))
_busy = select(run.c.id, run.c.status).where(run.c.agent_id == bindparam("agent_id"), is_unfinished).limit(1)
_versions = (
    select_version.where(_of_organization, _this, agent_version.c.version < bindparam("before"))
    .order_by(agent_version.c.version.desc())
    .limit(bindparam("limit"))
)
_insert_agent = agent.insert()
_insert_version = agent_version.insert()
_ABOVE_ALL_VERSIONS = 2**31 - 1


class SqlAgentStore:
    """The `AgentStore` port."""

    def __init__(self, *, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def add(self, new: Agent, audit: AuditEvent) -> None:

        def unit(connection: Connection) -> None:
            require_group(connection, new.organization_id, new.team)
            connection.execute(
                _insert_agent,
                {
                    "id": new.id,
                    "organization_id": new.organization_id,
                    "name": new.config.name,
                    "version": new.version,
                    "created_at": new.created_at,
                    "max_running": new.config.max_running,
                    "team": new.team,
                },
            )
            connection.execute(_insert_version, version_row(new, self._box))
            record(connection, audit)

        with duplicates_as(_taken(new)):
            await self._database.write(unit, scope=new.organization_id)

    async def save(self, changed: Agent, *, expected_version: int, audit: AuditEvent) -> None:
        wanted = {"organization_id": changed.organization_id, "agent_id": changed.id}

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).one_or_none(), "agent", changed.id)
            require_version("agent", stored.version, expected=expected_version)
            require_group(connection, changed.organization_id, changed.team, former=stored.team)
            connection.execute(
                _move,
                {
                    "agent_id": changed.id,
                    "new_name": changed.config.name,
                    "new_version": changed.version,
                    "new_max_running": changed.config.max_running,
                    "new_team": changed.team,
                },
            )
            connection.execute(_insert_version, version_row(changed, self._box))
            record(connection, audit)

        with duplicates_as(_taken(changed)):
            await self._database.write(unit, scope=changed.organization_id)

    async def get(self, organization_id: OrganizationId, agent_id: AgentId) -> Agent | None:
        wanted = {"organization_id": organization_id, "agent_id": agent_id}
        return await self._database.read(
            lambda connection: self._one(connection.execute(_get, wanted).first()), scope=organization_id
        )

    async def find(self, organization_id: OrganizationId, name: str) -> Agent | None:
        wanted = {"organization_id": organization_id, "name": name}
        return await self._database.read(
            lambda connection: self._one(connection.execute(_find, wanted).first()), scope=organization_id
        )

    async def names(
        self, organization_id: OrganizationId, agent_ids: Collection[AgentId], *, teams: Teams = None
    ) -> dict[AgentId, AgentName]:
        if not agent_ids:
            return {}
        wanted = {"organization_id": organization_id, "ids": sorted(agent_ids)}
        statement = _names.where(*seen_by(teams, agent.c.team))

        def unit(connection: Connection) -> dict[AgentId, AgentName]:
            rows = connection.execute(statement, wanted)
            return {AgentId(row.id): AgentName(name=row.name, deleted=row.deleted_at is not None) for row in rows}

        return await self._database.read(unit, scope=organization_id)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Agent]:
        statement = select_newest.where(agent.c.organization_id == organization_id, _in_use)
        return await self._database.read(newest_page(statement, request, agent.c, self._of), scope=organization_id)

    async def versions(self, organization_id: OrganizationId, agent_id: AgentId, request: PageRequest) -> Page[Agent]:
        before = _ABOVE_ALL_VERSIONS if request.cursor is None else decode_cursor(request.cursor)[0]
        wanted = {
            "organization_id": organization_id,
            "agent_id": agent_id,
            "before": min(before, _ABOVE_ALL_VERSIONS),
            "limit": request.limit + 1,
        }

        def unit(connection: Connection) -> Page[Agent]:
            rows = connection.execute(_versions, wanted).all()
            return page_of(
                rows[: request.limit],
                self._of,
                more=len(rows) > request.limit,
                cursor=lambda row: encode_cursor(row.version),
            )

        return await self._database.read(unit, scope=organization_id)

    async def delete(self, organization_id: OrganizationId, agent_id: AgentId, audit: AuditEvent) -> bool:
        wanted = {"organization_id": organization_id, "agent_id": agent_id}

        def unit(connection: Connection) -> bool:
            if connection.execute(_lock, wanted).first() is None:
                return False
            busy = connection.execute(_busy, {"agent_id": agent_id}).first()
            if busy is not None:
                raise conflict("agent_busy", f"Run {busy.id} of this agent is {busy.status}.", run_id=busy.id)
            connection.execute(_delete, {"agent_id": agent_id, "moment": audit.at})
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=organization_id)

    def _of(self, row: AnyRow) -> Agent:
        return agent_of(row, self._box)

    def _one(self, row: AnyRow | None) -> Agent | None:
        return None if row is None else self._of(row)


def _taken(refused: Agent) -> ServiceError:
    return conflict("agent_name_taken", f"There is an agent {refused.config.name!r} already.")
