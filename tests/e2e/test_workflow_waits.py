"""Workflow runs whose agents need approvals, in a real service: named, decided about, restarted
meanwhile, stopped."""

from pathlib import Path

import pytest

from tests.databases import PostgresDatabases
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.e2e.test_workflow_kills import Ledger, ledger

pytestmark = pytest.mark.timeout(300)


def shop(url: str) -> Json:
    """An agent that may order, and a branch beside it that is done at once."""
    order = {
        "method": "POST",
        "url": f"{url}/order",
        "body": {"item": "{{inputs.item}}"},
        "inputs": {"item": {"type": "string"}},
        "tool": {"name": "order", "description": "Orders.", "exposed": ["item"]},
    }
    return {
        "name": "shop",
        "nodes": [
            {"id": "start", "kind": "entrypoint"},
            {"id": "order", "kind": "http_request", "mode": "tool", "config": order},
            {"id": "buyer", "kind": "agent", "config": {"agent": "buyer", "input": "Buy {{start}}."}},
            {"id": "beside", "kind": "transform", "config": {"expression": "'beside'"}},
            {"id": "end", "kind": "transform", "config": {"expression": "text", "input": "{{buyer}}"}},
        ],
        "edges": [
            {"source": "start", "target": "buyer"},
            {"source": "start", "target": "beside"},
            {"source": "order", "target": "buyer", "target_handle": "tools"},
            {"source": "buyer", "target": "end"},
            {"source": "beside", "target": "end"},
        ],
    }


def prepared(service: Service, sent: Ledger) -> None:
    model = service.script("buyer", a_turn("I order.", ("order", {"item": "shoes"})), a_turn("Ordered."))
    service.agent("buyer", model, tools=[], tool_policies={"order": {"decision": "require_approval"}})
    service.call("POST", "/workflows", shop(sent.url), expect=201)


def begun(service: Service) -> Json:
    """A run that waits for an approval."""
    run_id = service.call("POST", "/workflows/shop/runs", {"input": "shoes"}, expect=202)["id"]
    return at_rest(service, run_id, "requires_action")


def at_rest(service: Service, run_id: str, status: str) -> Json:
    def is_so() -> bool:
        return bool(service.call("GET", f"/workflow-runs/{run_id}")["status"] == status)

    until(is_so, what=f"the workflow run is {status}")
    return service.call("GET", f"/workflow-runs/{run_id}")


def approval_of(run: Json) -> str:
    (pending,) = run["pending"]
    (call,) = pending["asked"]["calls"]
    assert (pending["node_id"], call["name"], call["params"]) == ("buyer", "order", {"item": "shoes"})
    return str(call["approval_id"])


@pytest.mark.requirement("C3", "F4")
def test_an_approval_that_is_given_after_a_restart_lets_the_workflow_go_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ledger() as sent:
        with serving(home) as service:
            prepared(service, sent)
            waiting = begun(service)
            approval = approval_of(waiting)
            assert waiting["attempt"] == 1
        with serving(home) as service:
            assert service.call("GET", f"/workflow-runs/{waiting['id']}") == waiting
            service.call("POST", f"/approvals/{approval}", {"decision": "approve"})
            run = at_rest(service, waiting["id"], "completed")
            assert (run["output"], sent.sent["order"]) == ("Ordered.", 1)
            nodes = {node["node_id"]: node for node in run["nodes"]}
            assert nodes["buyer"]["run_id"] == waiting["pending"][0]["run_id"]
            assert nodes["buyer"]["attempt"] == 1
            assert len(service.call("GET", "/runs")["data"]) == 1


@pytest.mark.requirement("C3", "F4")
def test_decisions_are_given_through_the_workflow_run_too_and_a_stop_takes_the_agents_run_with_it(
    service: Service,
) -> None:
    with ledger() as sent:
        prepared(service, sent)
        denied = begun(service)
        call_id = denied["pending"][0]["asked"]["calls"][0]["id"]
        decision = {"tool_call_id": call_id, "decision": "deny", "reason": "Too dear."}
        service.call(
            "POST", f"/workflow-runs/{denied['id']}/resume", {"node_id": "buyer", "approvals": [decision]}, expect=200
        )
        assert at_rest(service, denied["id"], "completed")["output"] == "Ordered."

        stopped = begun(service)
        service.call("POST", f"/workflow-runs/{stopped['id']}/cancel")
        at_rest(service, stopped["id"], "cancelled")
        agents = service.call("GET", f"/runs/{stopped['pending'][0]['run_id']}")
        assert agents["status"] == "cancelled"
        (cancelled,) = service.call("GET", "/approvals?state=cancelled")["data"]
        assert cancelled["id"] == approval_of(stopped)

        lost = begun(service)
        service.call("POST", f"/runs/{lost['pending'][0]['run_id']}/cancel")
        failed = at_rest(service, lost["id"], "failed")
        assert (failed["failed_node"], failed["error"]["code"]) == ("buyer", "agent_run_cancelled")
        assert sent.sent["order"] == 0


@pytest.mark.requirement("C3", "E6", "F4")
def test_on_postgresql_a_worker_hears_of_a_decision_at_another_process(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    with ledger() as sent, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        api = processes.serve("api", "--no-worker")
        prepared(api, sent)
        first = processes.work("first")
        waiting = begun(api)
        assert first.stop() == 0
        processes.work("second")
        api.call("POST", f"/approvals/{approval_of(waiting)}", {"decision": "approve"})
        run = at_rest(api, waiting["id"], "completed")
        assert (run["output"], run["attempt"], sent.sent["order"]) == ("Ordered.", 2, 1)
