"""Workflows that were to hold up a real service for everybody: another organization's requests are answered meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, serving

ANSWERED_WITHIN_S = 0.25
"""Time for the request of another organization while the attack is under way."""
ATTEMPTS = 3
"""Tries of which one has to stay within it: the machine of the tests may be busy, and what holds the service up does so each
time, for many seconds."""
NUMBERS = 500_000
"""To read and store more of them takes a noticeable time by itself, whatever the workflow does with them."""


@contextmanager
def another_organization(service: Service) -> Iterator[httpx.Client]:
    created = service.call("POST", "/organizations", {"name": f"other-{time.monotonic_ns()}"})
    headers = {"Authorization": f"Bearer {created['admin_key']['token']}"}
    with httpx.Client(base_url=f"{service.url}/v1", headers=headers, trust_env=False, timeout=120) as they:
        they.get("/organization").raise_for_status()
        yield they


def longest_wait(they: httpx.Client, attack: Callable[[], object]) -> float:
    """The slowest answer to another organization, request after request, until the attack is over."""
    over = threading.Event()
    waits: list[float] = []

    def ask() -> None:
        while not over.is_set():
            began = time.perf_counter()
            they.get("/organization").raise_for_status()
            waits.append(time.perf_counter() - began)
            over.wait(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        attack()
    finally:
        over.set()
        asking.join()
    return max(waits)


def assert_answered_meanwhile(service: Service, attack: Callable[[], object]) -> None:
    """The bound, or twice what this machine takes without an attack."""
    waits = []
    with another_organization(service) as they:
        for _ in range(ATTEMPTS):
            quiet = longest_wait(they, lambda: time.sleep(2))
            waits.append((longest_wait(they, attack), max(ANSWERED_WITHIN_S, 2 * quiet)))
            if waits[-1][0] <= waits[-1][1]:
                return
    raise AssertionError(f"slowest answers, and what they may take: {waits}")


def transform(node_id: str, expression: str, template: str) -> Json:
    return {"id": node_id, "kind": "transform", "config": {"expression": expression, "input": template}}


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("unit", ["{", "{{ ", "\\{{{", "{{a"])
def test_braces_without_end_in_a_workflow_do_not_hold_up_the_service(tmp_path: Path, unit: str) -> None:
    texts = [unit * (100_000 // len(unit))] * 5
    nodes = [transform(f"n{number}", "@", text) for number, text in enumerate(texts)]
    edges = [{"source": "start", "target": node["id"]} for node in nodes]
    definition = {"name": "braces", "nodes": [{"id": "start", "kind": "entrypoint"}, *nodes], "edges": edges}

    with serving(tmp_path / "home") as service:

        def attack() -> None:
            service.call("POST", "/workflows/validate", definition)

        assert_answered_meanwhile(service, attack)


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    "expression",
    [
        "[" + ",".join(["sum(a)"] * 580) + "]",
        "[" + ",".join(["sort(a)"] * 60) + "]",
        "[" + ",".join(["a==a"] * 800) + "]",
    ],
    ids=["sum", "sort", "equal"],
)
def test_a_costly_expression_over_a_large_value_fails_its_node_and_holds_up_nobody(
    tmp_path: Path, expression: str
) -> None:
    with serving(tmp_path / "home") as service:
        nodes = [{"id": "start", "kind": "entrypoint"}, transform("many", expression, "{{start}}")]
        edges = [{"source": "start", "target": "many"}]
        service.call("POST", "/workflows", {"name": "many", "nodes": nodes, "edges": edges})
        ended: Json = {}

        def has_ended() -> bool:
            found = service.call("GET", "/workflow-runs?limit=1")["data"][0]
            ended.update(found)
            return str(found["status"]) in {"completed", "failed"}

        def attack() -> None:
            service.call("POST", "/workflows/many/runs", {"input": {"a": [1] * NUMBERS}}, expect=202)
            until(has_ended, what="the workflow run has ended")

        assert_answered_meanwhile(service, attack)
        assert ended["status"] == "failed"
