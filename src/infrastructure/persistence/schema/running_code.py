"""Code that runs on a database while it is upgraded. Connections to PostgreSQL are called by the
revision of their process, which every user of the server may read."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from infrastructure.persistence.schema.revision import HEAD, WORKS_WITH

_NAME = "dragoman-schema-"
APPLICATION_NAME = f"{_NAME}{HEAD}"
"""What connections of this code are called (PostgreSQL, 20.8.4, application_name)."""

_names = text(
    "SELECT DISTINCT application_name FROM pg_stat_activity"
    " WHERE datname = current_database() AND starts_with(application_name, :name)"
)


def running_revisions(connection: Connection) -> tuple[str, ...]:
    """The revisions, sorted; none on SQLite, and none of processes whose address of the database
    names them otherwise."""
    if connection.dialect.name == "sqlite":
        return ()
    names = connection.execute(_names, {"name": _NAME}).scalars()
    return tuple(sorted(str(name).removeprefix(_NAME) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """What `upgrade` does to a database. `pending` are the revisions that it applies, `running`
    those of processes that are connected, `must_stop` those of them whose code does not work with
    the new schema. On SQLite nothing else is connected."""

    stored: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    target: str = HEAD

    @property
    def must_stop(self) -> tuple[str, ...]:
        return tuple(revision for revision in self.running if self.pending and revision not in WORKS_WITH)

    @property
    def contracts(self) -> bool:
        """Whether code of the stored revision stops working with the schema."""
        return bool(self.pending) and not set(self.stored) <= set(WORKS_WITH)
