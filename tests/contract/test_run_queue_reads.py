"""How much of the queue's table on PostgreSQL its functions read."""

import psycopg
import pytest

from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.queue_schema import SCHEMA
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from tests.databases import PostgresDatabases

_WITHDRAW = """
    CREATE TEMP TABLE ended (id text);
    CREATE TRIGGER withdraw AFTER INSERT ON ended FOR EACH ROW EXECUTE FUNCTION withdraw_run();
    INSERT INTO ended VALUES ('run_19000')
"""


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("analyzed", ["never", "empty", "full"])
@pytest.mark.parametrize(
    ("what", "bounds"),
    [
        ("SELECT take_runs(NULL, '{}', 16)", (16, 30 * (16 + 3))),
        ("SELECT take_runs(NULL, '{}', 0, 4)", (4, 10 + 30 * 3 + 4)),
        ("SELECT waiting_organizations()", (0, 10)),
        ("SELECT tidy_shares()", (0, 30 * 3)),
        ("SELECT submit_runs('{run_19000,run_0}', '{org_0,org_0}', '{normal,normal}', '{agt_10,agt_0}')", (1, 2)),
        (_WITHDRAW, (1, 4)),
    ],
    ids=["take", "take in spare places", "whose runs wait", "tidy", "submit", "withdraw"],
)
async def test_what_the_queue_reads_grows_with_its_lines_alone_whatever_is_known_of_its_table(
    postgres: tuple[str, Database],
    postgres_databases: PostgresDatabases,
    what: str,
    bounds: tuple[int, int],
    analyzed: str,
) -> None:
    url, _ = postgres
    changes, most = bounds
    waiting = """
        INSERT INTO procrastinate_jobs (queue_name, task_name, args)
        SELECT 'runs', 'execute_run', jsonb_build_object('run_id', 'run_' || number, 'organization_id', 'org_' || number % 10,
            'lane', 'normal', 'agent_id', 'agt_' || number % 30) FROM generate_series(1, 20000) AS number"""
    in_queue = f"-c search_path={SCHEMA}"
    with psycopg.connect(postgres_databases.owner_url(url), options=in_queue) as connection:
        for step in ("empty", waiting, "full"):
            if step == waiting:
                connection.execute(step)
            elif step == analyzed:
                connection.execute("ANALYZE procrastinate_jobs")
    # Another connection: what the insertion read may still be counted in its own.
    with psycopg.connect(postgres_databases.owner_url(url), options=in_queue) as connection:
        if what != _WITHDRAW:
            connection.execute(f"SET LOCAL ROLE {SYSTEM_ROLE}")
        connection.execute(what.encode())
        [(scanned, fetched, changed)] = connection.execute(
            "SELECT seq_tup_read, idx_tup_fetch, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
            " WHERE relname = 'procrastinate_jobs'"
        ).fetchall()
    assert (scanned, changed) == (0, changes)
    assert fetched <= most
