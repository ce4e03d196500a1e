"""The functions by which runs are submitted to the queue on PostgreSQL and taken from it in a fair
order (ADR 0063), and what they need beside the library's schema. Above: `install_queue`."""

from domain.runs.lane import LANE_WEIGHTS, RUN_COST, Lane
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.postgres.queue_schema import QUEUE, SCHEMA, STALLED_S, TASK, VERSION, WORKS_WITH
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE

_ORGANIZATION, _LANE, _AGENT = (
    f"coalesce(job.args->>'{name}', '')" for name in ("organization_id", "lane", "agent_id")
)
"""What a job says of its flow; nothing, if its run was unknown when it was submitted."""
_LINE = f"{_ORGANIZATION}, {_LANE}, {_AGENT}"
_WEIGHT_OF_LANE = " ".join(f"WHEN '{lane}' THEN {weight}" for lane, weight in LANE_WEIGHTS.items())

_TABLES = f"""
CREATE INDEX IF NOT EXISTS dragoman_waiting_runs ON procrastinate_jobs ((args->>'run_id')) WHERE status = 'todo';
CREATE INDEX IF NOT EXISTS dragoman_waiting_lines ON procrastinate_jobs
    ({", ".join(f"({column.replace('job.', '')})" for column in (_ORGANIZATION, _LANE, _AGENT))}, id) WHERE status = 'todo';

-- One row for each share: '*' for all runs, an organization, a lane of it, an agent in that lane. `finish` is the tag at which its
-- next run may start in the share above, `virtual` the start tag of the last run taken from it.
CREATE TABLE IF NOT EXISTS dragoman_share (
    name text PRIMARY KEY,
    finish bigint NOT NULL DEFAULT 0,
    virtual bigint NOT NULL DEFAULT 0
);
"""

# As its owner, so that any role that writes a run can signal it in the same transaction and touch
# nothing else here. A run that waits to be fetched is not signalled again, or a sweep over a
# backlog would make it grow. Two that signal at the same moment may both do so, which is harmless;
# a unique index would abort one's transaction.
_SUBMIT = f"""
CREATE OR REPLACE FUNCTION submit_runs(run_ids text[], organization_ids text[], lanes text[], agent_ids text[])
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
    SELECT procrastinate_defer_jobs_v1(array_agg(
        ROW('{QUEUE}', '{TASK}', 0, NULL, NULL, jsonb_build_object(
            'run_id', wanted.run_id, 'organization_id', wanted.organization_id, 'lane', wanted.lane, 'agent_id', wanted.agent_id
        ), NULL)::procrastinate_job_to_defer_v1 ORDER BY wanted.place
    ))
    FROM unnest(run_ids, organization_ids, lanes, agent_ids)
        WITH ORDINALITY AS wanted (run_id, organization_id, lane, agent_id, place)
    WHERE NOT EXISTS (SELECT FROM waiting_jobs(wanted.run_id))
    HAVING count(*) > 0
$$;
REVOKE ALL ON FUNCTION submit_runs(text[], text[], text[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION submit_runs(text[], text[], text[], text[]) TO {REQUEST_ROLE}, {SYSTEM_ROLE};
"""  # noqa: S608  # names of ours alone

SUBMIT = f"""
SELECT {SCHEMA}.submit_runs(
    array_agg(wanted.run_id ORDER BY wanted.place),
    array_agg(coalesce(run.organization_id, workflow_run.organization_id) ORDER BY wanted.place),
    array_agg(coalesce(run.lane, '{Lane.NORMAL}') ORDER BY wanted.place),
    array_agg(run.agent_id ORDER BY wanted.place)
)
FROM unnest(CAST(:run_ids AS text[])) WITH ORDINALITY AS wanted (run_id, place)
LEFT JOIN run ON run.id = wanted.run_id
LEFT JOIN workflow_run ON workflow_run.id = wanted.run_id
"""  # noqa: S608  # names of ours alone
"""Signals runs, with the rights of the caller to read them."""

_BY_INDEX = "SET enable_seqscan = off SET enable_bitmapscan = off"
"""Index scans are forced, because plans are stored while the table is small."""
_BY_ORDER = f"{_BY_INDEX} SET enable_sort = off"
_WAITING = f"""
CREATE OR REPLACE FUNCTION waiting_jobs(of_run text) RETURNS SETOF bigint LANGUAGE plpgsql STABLE ROWS 1
SET search_path = {SCHEMA}, pg_temp {_BY_ORDER} AS $$
BEGIN
    RETURN QUERY SELECT job.id FROM procrastinate_jobs AS job
    WHERE job.status = 'todo' AND job.args->>'run_id' >= of_run AND job.args->>'run_id' <= of_run ORDER BY job.args->>'run_id';
END
$$;
REVOKE ALL ON FUNCTION waiting_jobs(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waiting_jobs(text) TO {SYSTEM_ROLE};
CREATE OR REPLACE FUNCTION waiting_runs(of_line integer)
RETURNS TABLE (organization_id text, lane text, agent_id text, id bigint, place bigint) LANGUAGE plpgsql STABLE
SET search_path = {SCHEMA}, pg_temp {_BY_ORDER} AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH RECURSIVE line AS (
        (SELECT {_ORGANIZATION} AS organization_id, {_LANE} AS lane, {_AGENT} AS agent_id FROM procrastinate_jobs AS job
         WHERE job.status = 'todo' ORDER BY {_LINE} LIMIT 1)
        UNION ALL
        SELECT next.* FROM line CROSS JOIN LATERAL (
            SELECT {_LINE} FROM procrastinate_jobs AS job
            WHERE job.status = 'todo' AND ({_LINE}) > (line.organization_id, line.lane, line.agent_id)
            ORDER BY {_LINE} LIMIT 1
        ) AS next (organization_id, lane, agent_id)
    )
    SELECT line.organization_id, line.lane, line.agent_id, first.id, first.place
    FROM line CROSS JOIN LATERAL (
        SELECT job.id, row_number() OVER (ORDER BY {_LINE}, job.id) AS place FROM procrastinate_jobs AS job
        WHERE job.status = 'todo' AND ({_LINE}) >= (line.organization_id, line.lane, line.agent_id)
            AND ({_LINE}) <= (line.organization_id, line.lane, line.agent_id)
        ORDER BY {_LINE}, job.id LIMIT of_line
    ) AS first;
END
$$;
REVOKE ALL ON FUNCTION waiting_runs(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waiting_runs(integer) TO {SYSTEM_ROLE};
CREATE OR REPLACE FUNCTION waiting_organizations() RETURNS SETOF text LANGUAGE plpgsql STABLE
SET search_path = {SCHEMA}, pg_temp {_BY_ORDER} AS $$
BEGIN
    RETURN QUERY WITH RECURSIVE owner AS (
        (SELECT {_ORGANIZATION} AS id FROM procrastinate_jobs AS job WHERE job.status = 'todo' ORDER BY {_LINE} LIMIT 1)
        UNION ALL
        SELECT next.id FROM owner CROSS JOIN LATERAL (
            SELECT {_ORGANIZATION} FROM procrastinate_jobs AS job
            WHERE job.status = 'todo' AND {_ORGANIZATION} > owner.id ORDER BY {_LINE} LIMIT 1
        ) AS next (id)
    )
    SELECT owner.id FROM owner;
END
$$;
REVOKE ALL ON FUNCTION waiting_organizations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION waiting_organizations() TO {SYSTEM_ROLE};
"""  # noqa: S608  # names of ours alone
"""What waits: of a run, the first jobs of each line, by one index probe for each line and one for
its jobs, and whose they are.

Only one index has the order that each asks for, because they ask for ranges and not for what is
equal. Other indexes look as cheap where the table was empty when it was analyzed, and are refused
by refusing sorts.
"""
_OCCUPIED = f"""
        SELECT run.organization_id, run.agent_id FROM run WHERE run.status = '{RunStatus.IN_PROGRESS}'
        UNION ALL
        SELECT run.organization_id, run.agent_id FROM procrastinate_jobs AS job
        JOIN procrastinate_workers AS holder ON holder.id = job.worker_id JOIN run ON run.id = job.args->>'run_id'
        WHERE job.status = 'doing' AND job.worker_id IS NOT NULL AND run.status = '{RunStatus.QUEUED}'
            AND holder.last_heartbeat > now() - interval '{STALLED_S} s'
            AND NOT EXISTS (SELECT FROM waiting_jobs(run.id))
    """  # noqa: S608  # names of ours alone
"""The places of bounded organizations and agents: runs in progress, and those that were taken and
are about to be claimed. It is read where there is a bound only. The claim counts again, exactly; a
worker that was lost in between has no place."""
_LOCKED = "PERFORM pg_advisory_xact_lock(hashtext('dragoman_share'))"
"""One transaction changes shares at a time."""


def _upgrade(tables: str) -> str:
    """For jobs of the version before, and for its processes that still run: they submit runs
    without their flows."""
    return f"""
CREATE OR REPLACE FUNCTION submit_runs(run_ids text[]) RETURNS void LANGUAGE sql SET search_path = {SCHEMA}, {tables}, pg_temp AS $$
{SUBMIT.replace("CAST(:run_ids AS text[])", "run_ids")}
$$;
REVOKE ALL ON FUNCTION submit_runs(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION submit_runs(text[]) TO {REQUEST_ROLE}, {SYSTEM_ROLE};

-- With the rights to read the runs of all organizations, which the owner of the tables does not have.
SET LOCAL ROLE {SYSTEM_ROLE};
UPDATE procrastinate_jobs AS job
SET args = job.args || jsonb_build_object('organization_id', run.organization_id, 'lane', run.lane, 'agent_id', run.agent_id)
FROM {tables}.run WHERE job.status = 'todo' AND run.id = job.args->>'run_id' AND job.args->>'organization_id' IS NULL;
RESET ROLE;
"""  # noqa: S608  # names of ours alone


def _withdraw(tables: str) -> str:
    """A run that ends while it is queued leaves the queue in the same transaction: its organization
    is not charged for it. A job that is being taken at this moment is left alone; then the claim
    decides."""
    return f"""
CREATE OR REPLACE FUNCTION withdraw_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = {SCHEMA}, pg_temp {_BY_INDEX} AS $$
BEGIN
    DELETE FROM procrastinate_jobs WHERE id = ANY (ARRAY(
        SELECT job.id FROM procrastinate_jobs AS job
        WHERE job.id = ANY (ARRAY(SELECT waiting_jobs(NEW.id))) AND job.status::text = 'todo' FOR UPDATE SKIP LOCKED
    ));
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER withdraw_run AFTER UPDATE OF status ON {tables}.run FOR EACH ROW
    WHEN (OLD.status = '{RunStatus.QUEUED}' AND NEW.status NOT IN ('{RunStatus.QUEUED}', '{RunStatus.IN_PROGRESS}'))
    EXECUTE FUNCTION withdraw_run();
"""  # noqa: S608  # names of ours alone


_TIDY = f"""
CREATE OR REPLACE FUNCTION tidy_shares() RETURNS void LANGUAGE plpgsql SET search_path = {SCHEMA}, pg_temp {_BY_INDEX} AS $$
BEGIN
    {_LOCKED};
    WITH line AS MATERIALIZED (SELECT * FROM waiting_runs(1)),
    waiting AS (
        SELECT '*' AS name FROM line
        UNION SELECT organization_id FROM line
        UNION SELECT concat_ws('/', organization_id, lane) FROM line
        UNION SELECT concat_ws('/', organization_id, lane, agent_id) FROM line
    )
    DELETE FROM dragoman_share AS share
    WHERE share.name <> '*' AND share.name NOT IN (SELECT waiting.name FROM waiting) AND NOT EXISTS (
        SELECT FROM dragoman_share AS above JOIN waiting ON waiting.name = above.name
        WHERE above.name = CASE WHEN share.name LIKE '%/%' THEN regexp_replace(share.name, '/[^/]*$', '') ELSE '*' END
            AND above.virtual < share.finish
    );
END
$$;
REVOKE ALL ON FUNCTION tidy_shares() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tidy_shares() TO {SYSTEM_ROLE};
"""  # noqa: S608  # names of ours alone
"""Forgets shares without waiting runs that could start at the present virtual time, which is how an
unknown share begins, and all below a share without waiting runs."""


def _take(tables: str) -> str:
    """All of a consumer's business in one round trip: the jobs that have ended go, and as many
    others as it has places for are marked as its own, in the fair order; then `spare` others, one
    for each organization without a job here (ADR 0101).

    Of each line only the first jobs are read, however many wait. A line whose organization or agent
    has as many runs in progress as may be is passed over.
    """
    return f"""
DROP FUNCTION IF EXISTS take_runs(bigint, bigint[], integer);
CREATE OR REPLACE FUNCTION take_runs(worker bigint, ended bigint[], places integer, spare integer DEFAULT 0)
RETURNS TABLE (job_id bigint, run_id text) LANGUAGE plpgsql
SET search_path = {SCHEMA}, {tables}, pg_temp {_BY_INDEX} AS $$
DECLARE
    of_line integer := greatest(places, 1);
    present text[];
BEGIN
    DELETE FROM procrastinate_jobs AS job WHERE job.id = ANY (ended);
    IF spare > 0 THEN
        present := ARRAY(
            SELECT DISTINCT {_ORGANIZATION} FROM procrastinate_jobs AS job WHERE job.worker_id = worker AND job.status = 'doing'
        );
    END IF;
    IF places > 0 AND NOT EXISTS (SELECT FROM procrastinate_jobs AS job WHERE job.status = 'todo') THEN
        RETURN;
    ELSIF places < 1 AND (spare < 1 OR NOT EXISTS (
        SELECT FROM waiting_organizations() AS owner (id) WHERE owner.id <> ALL (present)
    )) THEN
        RETURN;
    END IF;
    {_LOCKED};
    RETURN QUERY WITH waiting AS MATERIALIZED (SELECT * FROM waiting_runs(of_line)),
    line AS MATERIALIZED (SELECT waiting.* FROM waiting WHERE waiting.place = 1),
    occupied AS ({_OCCUPIED}),
    owner AS MATERIALIZED (
        SELECT owner.organization_id, {RUN_COST} / coalesce((stored.settings->>'queue_weight')::bigint, 1) AS cost,
            CASE WHEN stored.settings->>'max_running' IS NULL THEN of_line
            ELSE (stored.settings->>'max_running')::bigint
                - (SELECT count(*) FROM occupied WHERE occupied.organization_id = owner.organization_id) END AS free
        FROM (SELECT DISTINCT line.organization_id FROM line) AS owner
        LEFT JOIN LATERAL (
            SELECT organization.settings::jsonb AS settings FROM organization WHERE organization.id = owner.organization_id
        ) AS stored ON true
    ),
    bounded_agent AS MATERIALIZED (
        SELECT agent.id, agent.max_running - (SELECT count(*) FROM occupied WHERE occupied.agent_id = agent.id) AS free
        FROM agent WHERE agent.max_running IS NOT NULL AND agent.id IN (SELECT line.agent_id FROM line)
    ),
    ready AS (
        SELECT line.organization_id, line.lane, line.agent_id, owner.cost, owner.free AS owner_free,
            coalesce(bounded_agent.free, of_line) AS agent_free
        FROM line JOIN owner ON owner.organization_id = line.organization_id
        LEFT JOIN bounded_agent ON bounded_agent.id = line.agent_id
        WHERE line.agent_id = '' OR (owner.free > 0 AND coalesce(bounded_agent.free, of_line) > 0)
    ),
    by_agent AS (
        SELECT line.*, first.id, greatest(agent.finish, lane.virtual, 0) + (first.place - 1) * {RUN_COST} AS agent_tag
        FROM ready AS line
        JOIN waiting AS first ON (first.organization_id, first.lane, first.agent_id) = (line.organization_id, line.lane, line.agent_id)
        LEFT JOIN dragoman_share AS lane ON lane.name = concat_ws('/', line.organization_id, line.lane)
        LEFT JOIN dragoman_share AS agent ON agent.name = concat_ws('/', line.organization_id, line.lane, line.agent_id)
    ),
    by_lane AS (
        SELECT by_agent.*, of_lane.cost AS lane_cost, greatest(lane.finish, organization.virtual, 0)
            + (row_number() OVER (PARTITION BY organization_id, by_agent.lane ORDER BY agent_tag, id) - 1) * of_lane.cost AS lane_tag
        FROM by_agent
        CROSS JOIN LATERAL (SELECT {RUN_COST} / (CASE by_agent.lane {_WEIGHT_OF_LANE} ELSE 1 END)) AS of_lane (cost)
        LEFT JOIN dragoman_share AS organization ON organization.name = by_agent.organization_id
        LEFT JOIN dragoman_share AS lane ON lane.name = concat_ws('/', by_agent.organization_id, by_agent.lane)
    ),
    within_agent AS (
        SELECT by_lane.*, row_number() OVER (PARTITION BY organization_id, agent_id ORDER BY lane_tag, agent_tag, id) AS agent_turn
        FROM by_lane
    ),
    by_organization AS (
        SELECT next.*, greatest(organization.finish, everything.virtual, 0)
            + (row_number() OVER (PARTITION BY organization_id ORDER BY lane_tag, agent_tag, next.id) - 1) * next.cost AS tag,
            count(*) FILTER (WHERE agent_id <> '')
                OVER (PARTITION BY organization_id ORDER BY lane_tag, agent_tag, next.id) AS owner_turn
        FROM within_agent AS next
        LEFT JOIN dragoman_share AS organization ON organization.name = organization_id
        LEFT JOIN dragoman_share AS everything ON everything.name = '*'
        WHERE agent_id = '' OR agent_turn <= agent_free
    ),
    in_turn AS (
        SELECT *, row_number() OVER (ORDER BY tag, id) AS turn, row_number() OVER (PARTITION BY organization_id ORDER BY tag, id) AS of_owner
        FROM by_organization WHERE agent_id = '' OR owner_turn <= owner_free
    ),
    next AS (
        SELECT *, tag AS paid FROM in_turn WHERE turn <= places
        UNION ALL
        (SELECT *, least(tag, coalesce((SELECT virtual FROM dragoman_share WHERE name = '*'), 0) + cost) FROM in_turn
         WHERE turn > places AND of_owner = 1 AND organization_id <> ALL (present) ORDER BY turn LIMIT spare)
    ),
    chosen AS (
        SELECT next.* FROM next CROSS JOIN LATERAL (
            SELECT FROM procrastinate_jobs AS job WHERE job.id = next.id AND job.status::text = 'todo' FOR UPDATE SKIP LOCKED
        ) AS not_withdrawn
    ),
    taken AS (
        UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = worker
        WHERE job.id = ANY (ARRAY(SELECT chosen.id FROM chosen))
        RETURNING job.id, job.args->>'run_id' AS run_id
    ),
    charged AS (
        INSERT INTO dragoman_share AS share (name, finish, virtual)
        SELECT '*', 0, max(tag) FROM chosen WHERE turn <= places HAVING count(*) > 0
        UNION ALL
        SELECT organization_id, max(paid + cost), max(lane_tag) FROM chosen
        GROUP BY organization_id
        UNION ALL
        SELECT concat_ws('/', organization_id, lane), max(lane_tag + lane_cost), max(agent_tag) FROM chosen
        GROUP BY organization_id, lane
        UNION ALL
        SELECT concat_ws('/', organization_id, lane, agent_id), max(agent_tag) + {RUN_COST}, 0 FROM chosen
        GROUP BY organization_id, lane, agent_id
        ON CONFLICT (name) DO UPDATE SET
            finish = greatest(share.finish, excluded.finish), virtual = greatest(share.virtual, excluded.virtual)
    )
    SELECT taken.id, taken.run_id FROM taken JOIN chosen ON chosen.id = taken.id ORDER BY chosen.tag, chosen.id;
END
$$;
REVOKE ALL ON FUNCTION take_runs(bigint, bigint[], integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION take_runs(bigint, bigint[], integer, integer) TO {SYSTEM_ROLE};
"""  # noqa: S608  # names of ours alone


def functions(tables: str) -> str:
    """Everything of ours in the queue's schema. `tables` is the quoted name of the schema with the
    tables of runs."""
    return f"""
{_TABLES}
{_WAITING}
{_SUBMIT}
{_take(tables)}
{_TIDY}
{_withdraw(tables)}
GRANT USAGE ON SCHEMA {SCHEMA} TO {REQUEST_ROLE}, {SYSTEM_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {SYSTEM_ROLE};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {SYSTEM_ROLE};
{_upgrade(tables)}
COMMENT ON SCHEMA {SCHEMA} IS '{" ".join((VERSION, *WORKS_WITH))}';
"""
