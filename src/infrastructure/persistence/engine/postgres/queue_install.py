"""Makes the queue on PostgreSQL: the library's schema or what is missing of it, and the functions by which runs are submitted
and taken. Above: `upgrade`."""

import logging
from importlib.metadata import distribution
from pathlib import Path

import psycopg
from sqlalchemy import Connection, text

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.postgres.queue_schema import (
    LIBRARY_SCHEMA,
    QUEUE,
    SCHEMA,
    TASK,
    VERSION,
    stored_version,
)
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE

logger = logging.getLogger(__name__)

_OURS = f"""
CREATE INDEX IF NOT EXISTS dragoman_waiting_runs ON procrastinate_jobs ((args->>'run_id')) WHERE status = 'todo';

-- As its owner, so that any role that writes a run can signal it in the same transaction and touch nothing else here.
-- A run that waits to be fetched is not signalled again, or a sweep over a backlog would make it grow. Two that signal at the
-- same moment may both do so, which is harmless; a unique index would abort one's transaction.
CREATE OR REPLACE FUNCTION submit_runs(run_ids text[]) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = {SCHEMA}, pg_temp AS $$
    SELECT procrastinate_defer_jobs_v1(array_agg(
        ROW('{QUEUE}', '{TASK}', 0, NULL, NULL, jsonb_build_object('run_id', wanted.run_id), NULL)
        ::procrastinate_job_to_defer_v1 ORDER BY wanted.place
    ))
    FROM unnest(run_ids) WITH ORDINALITY AS wanted (run_id, place)
    WHERE NOT EXISTS (
        SELECT FROM procrastinate_jobs AS job WHERE job.status = 'todo' AND job.args->>'run_id' = wanted.run_id
    )
    HAVING count(*) > 0
$$;

-- All of a consumer's business in one round trip: the jobs that have ended go, and as many others as it has places for are
-- marked as its own, oldest first, by the library's function.
CREATE OR REPLACE FUNCTION take_runs(worker bigint, ended bigint[], places integer)
RETURNS TABLE (job_id bigint, run_id text) LANGUAGE plpgsql
SET search_path = {SCHEMA}, pg_temp AS $$
DECLARE
    taken procrastinate_jobs;
BEGIN
    DELETE FROM procrastinate_jobs AS job WHERE job.id = ANY (ended);
    FOR place IN 1..places LOOP
        taken := procrastinate_fetch_job_v2(ARRAY['{QUEUE}'], worker);
        EXIT WHEN taken.id IS NULL;
        job_id := taken.id;
        run_id := taken.args->>'run_id';
        RETURN NEXT;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION submit_runs(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION take_runs(bigint, bigint[], integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION take_runs(bigint, bigint[], integer) TO {SYSTEM_ROLE};
GRANT USAGE ON SCHEMA {SCHEMA} TO {REQUEST_ROLE}, {SYSTEM_ROLE};
GRANT EXECUTE ON FUNCTION submit_runs(text[]) TO {REQUEST_ROLE}, {SYSTEM_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {SYSTEM_ROLE};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {SYSTEM_ROLE};
COMMENT ON SCHEMA {SCHEMA} IS '{VERSION}';
"""  # noqa: S608  # names of ours alone


def install_queue(connection: Connection) -> None:
    """Make the queue what it should be, in the caller's transaction, after the roles are there. Raises UNAVAILABLE
    `schema_unknown` for a queue of newer code, `storage_unavailable`."""
    stored = stored_version(connection)
    if stored == VERSION:
        return
    if stored is not None and _number(stored) > _number(VERSION):
        raise ServiceError(
            "schema_unknown",
            ErrorKind.UNAVAILABLE,
            "The database was last used by another version of Dragoman, whose queue this one does not know.",
        )
    scripts = [_script("schema.sql")] if stored is None else _migrations(after=_number(stored)[0])
    try:
        _apply(connection, (*scripts, _OURS))
    except psycopg.Error as error:
        logger.error("the run queue cannot be made: %s", error)
        raise ServiceError(
            "storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot be used; the line before says why."
        ) from error


def _apply(connection: Connection, scripts: tuple[str, ...]) -> None:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"{raw!r} is not a connection to PostgreSQL")
    search_path = connection.execute(text("SELECT current_setting('search_path')")).scalar_one()
    raw.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
    raw.execute(f"SET LOCAL search_path TO {SCHEMA}".encode())
    for script in scripts:
        # Without parameters: then a message may hold many statements, and percent signs mean themselves.
        raw.execute(script.encode(), prepare=False)
    connection.execute(text("SELECT set_config('search_path', :before, true)"), {"before": search_path})


def installed_library_schema() -> str:
    """The newest migration that the installed library brings."""
    return _names()[-1][: len(LIBRARY_SCHEMA)]


def _number(version: str) -> tuple[str, int]:
    library, _, ours = version.partition("/")
    return library, int(ours or 0)


def _migrations(*, after: str) -> list[str]:
    return [_script(f"migrations/{name}") for name in _names() if after < name[: len(LIBRARY_SCHEMA)] <= LIBRARY_SCHEMA]


def _names() -> list[str]:
    return sorted(path.name for path in _folder().joinpath("migrations").glob("*.sql"))


def _script(name: str) -> str:
    return _folder().joinpath(name).read_text(encoding="utf-8")


def _folder() -> Path:
    """Where the library keeps its SQL; found without importing it."""
    return Path(str(distribution("procrastinate").locate_file("procrastinate/sql")))
