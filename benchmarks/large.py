"""A small database beside a large one on one PostgreSQL server: what 1,000 organizations, 100,000
threads and 10 million events change.

`python -m benchmarks.large` prints it, `--events N` with fewer events;
`make bench BENCH_ARGS=--long` too.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import psycopg

from benchmarks.calls import tool_call
from benchmarks.figures import Budget, held
from benchmarks.processes import counterpart
from benchmarks.upstreams import MODERN, UPSTREAMS
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from tests.databases import PostgresDatabases, postgres_server
from tests.e2e.postgres import cluster
from tests.e2e.service import Service, a_turn

ORGANIZATIONS, THREADS, EVENTS = 1_000, 100_000, 10_000_000
WARM_UP, ROUNDS, EACH = 20, 10, 20
_RATIO = Budget(what="largest latency beside a large database (p50)", limit=1.2, unit="of a small one's")

# Copies of one organization, thread, run, request and message of the service, so that every column
# has what it may have.
_FILL = """
CREATE TEMPORARY TABLE copy AS SELECT n, 'thr_large_' || n AS thread_id, 'run_large_' || n AS run_id,
    'agt_large_' || n % {organizations} AS agent_id,
    CASE WHEN n % {organizations} = 0 THEN (SELECT organization_id FROM run LIMIT 1)
        ELSE 'org_large_' || n % {organizations} END AS organization_id
    FROM generate_series(1, {threads}) n;
INSERT INTO organization SELECT new.* FROM organization one, generate_series(1, {organizations}) n,
    LATERAL jsonb_populate_record(one, jsonb_build_object('id', 'org_large_' || n)) new
    WHERE one.ctid = (SELECT min(ctid) FROM organization);
INSERT INTO thread SELECT new.* FROM thread one, copy,
    LATERAL jsonb_populate_record(one, jsonb_build_object('id', copy.thread_id, 'organization_id', copy.organization_id,
        'created_at', one.created_at - n * 1000000::bigint)) new
    WHERE one.ctid = (SELECT min(ctid) FROM thread);
INSERT INTO run SELECT new.* FROM run one, copy,
    LATERAL jsonb_populate_record(one, jsonb_build_object('id', copy.run_id, 'organization_id', copy.organization_id,
        'thread_id', copy.thread_id, 'agent_id', copy.agent_id, 'created_at', one.created_at - n * 1000000::bigint)) new
    WHERE one.ctid = (SELECT min(ctid) FROM run WHERE status = 'completed');
INSERT INTO run_request SELECT new.* FROM run_request one, copy,
    LATERAL jsonb_populate_record(one, jsonb_build_object('run_id', copy.run_id, 'organization_id', copy.organization_id))
        new
    WHERE one.ctid = (SELECT min(ctid) FROM run_request);
INSERT INTO message SELECT new.* FROM message one, copy, generate_series(1, 4) p,
    LATERAL jsonb_populate_record(one, jsonb_build_object('id', 'msg_large_' || n || '_' || p, 'thread_id', copy.thread_id,
        'run_id', copy.run_id, 'organization_id', copy.organization_id, 'position', p)) new
    WHERE one.ctid = (SELECT min(ctid) FROM message);
INSERT INTO run_event (run_id, seq, organization_id, type, at, data)
    SELECT copy.run_id, s, copy.organization_id, one.type, one.at, one.data
    FROM run_event one, copy, generate_series(1, {events_each}) s
    WHERE one.ctid = (SELECT min(ctid) FROM run_event WHERE data IS NOT NULL);
INSERT INTO audit_event SELECT new.* FROM audit_event one, copy,
    LATERAL jsonb_populate_record(one, jsonb_build_object('id', 'aud_large_' || n, 'organization_id', copy.organization_id,
        'at', one.at - n * 1000000::bigint)) new
    WHERE one.id = (SELECT min(id) FROM audit_event);
INSERT INTO usage SELECT new.* FROM usage one, copy,
    LATERAL jsonb_populate_record(one, jsonb_build_object('organization_id', copy.organization_id, 'agent_id', copy.agent_id))
        new
    WHERE one.ctid = (SELECT min(ctid) FROM usage) ON CONFLICT DO NOTHING;
"""

Act = Callable[[], None]


@contextmanager
def databases_and_services(events: int) -> Iterator[tuple[Mapping[str, Act], Mapping[str, Act]]]:
    """What is measured, on a small database and on a large one."""
    with ExitStack() as stack:
        port = stack.enter_context(counterpart("mcp-modern"))
        server = stack.enter_context(postgres_server())
        databases = stack.enter_context(PostgresDatabases(server).prepared())
        acts: list[Mapping[str, Act]] = []
        connections: list[HTTPConnection] = []
        for name, is_large in (("small", False), ("large", True)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
            url = stack.enter_context(databases.fresh())
            processes = stack.enter_context(cluster(url, folder))
            processes.extra.update(OPENAI_API_KEY="bench", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
            service = processes.serve(name)
            connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", _port(service), timeout=60)))
            acts.append(prepared(service, connection, port))
            if is_large:
                fill(url, events)
            connections.append(connection)
        for connection in connections:
            connection.close()  # idle while the large one was filled; the next request opens it
        yield acts[0], acts[1]


def fill(url: str, events: int, *, organizations: int = ORGANIZATIONS, threads: int = THREADS) -> None:
    """Make the database large: it has an organization with a completed run and an audit entry."""
    sizes = {"organizations": organizations, "threads": threads, "events_each": events // threads}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(f"SET ROLE {SYSTEM_ROLE}".encode())
        for statement in _FILL.format(**sizes).split(";\n"):
            if statement.strip():
                connection.execute(statement.encode())
        connection.execute("RESET ROLE")
        connection.execute("VACUUM ANALYZE")


def prepared(service: Service, connection: HTTPConnection, port: int) -> Mapping[str, Act]:
    """Agents, a server, a thread and runs; what is measured, by its name."""
    upstream = next(one for one in UPSTREAMS if one.slug == "modern")
    tool = "mcp__modern__echo"
    service.call("POST", "/mcp-servers", dict(upstream.config(port)))
    service.agent("says", service.script("says", a_turn("Hi.")))
    policies = {tool: {"decision": "allow", "allowed_params": ["text"]}}
    service.agent("gateway", "openai:bench", mcp_servers=["modern"], tool_policies=policies)
    session = service.call("POST", "/gateway-sessions", {"agent_id": "gateway"})
    body, headers = tool_call(tool, MODERN)
    key = {"Authorization": f"Bearer {service.key}"}
    run = json.dumps({"agent": "says", "input": "Go."}).encode()
    act = partial(_act, connection)
    acts = {
        "a run": partial(act, "POST", "/v1/runs/wait", run, key),
        "a call through the gateway": partial(
            act, "POST", "/mcp", body, {**headers, "Authorization": f"Bearer {session['token']}"}
        ),
    }
    acts["a run"]()
    found = service.call("GET", "/runs?limit=1")["data"][0]
    paths = {
        "runs": "/runs?limit=20",
        "runs that failed": "/runs?limit=20&status=failed",
        "runs of an agent": "/runs?limit=20&agent_id=says",
        "threads": "/threads?limit=20",
        "a run's events": f"/runs/{found['id']}/events",
        "the queue": "/queue",
        "usage": "/usage",
        "audit": "/audit-events?limit=20",
    }
    return {**acts, **{name: partial(act, "GET", f"/v1{path}", None, key) for name, path in paths.items()}}


def latencies(small: Mapping[str, Act], large: Mapping[str, Act]) -> dict[str, tuple[float, float]]:
    """Medians in ms on both, in turns."""
    taken: dict[tuple[str, bool], list[float]] = {}
    for acts in (small, large):
        for act in acts.values():
            for _ in range(WARM_UP):
                act()
    for _ in range(ROUNDS):
        for name in small:
            for _ in range(EACH):
                # In turns, so that the load of the machine is the same for both.
                for is_large, acts in ((False, small), (True, large)):
                    began = time.perf_counter()
                    acts[name]()
                    taken.setdefault((name, is_large), []).append(time.perf_counter() - began)
    return {
        name: (1000 * statistics.median(taken[name, False]), 1000 * statistics.median(taken[name, True]))
        for name in small
    }


def report(events: int = EVENTS) -> list[str]:
    """Everything measured, as lines of docs/performance.md."""
    with databases_and_services(events) as (small, large):
        medians = latencies(small, large)
    ratios = {name: after / before for name, (before, after) in medians.items()}
    return [
        f"{ORGANIZATIONS:,} organizations, {THREADS:,} threads with a run of {events // THREADS} events and 4 messages each; medians of"
        f" {ROUNDS * EACH} requests, one at a time, in turns with a service on a small database of the same server.",
        "",
        "| request | small, ms | large, ms | ratio |",
        "|---|---|---|---|",
        *(f"| {name} | {before:.2f} | {after:.2f} | {ratios[name]:.2f} |" for name, (before, after) in medians.items()),
        *held((_RATIO, max(ratios.values()))),
    ]


def _port(service: Service) -> int:
    return int(service.url.rpartition(":")[2])


def _act(connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> None:
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{method} {path} was answered {answer.status}: {text[:600]!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large")
    parser.add_argument("--events", type=int, default=EVENTS)
    sys.stdout.write("\n".join([*report(parser.parse_args().events), ""]))
