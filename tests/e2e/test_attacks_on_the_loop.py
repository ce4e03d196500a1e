"""Workflows that were to hold up a real service for everybody: another organization's requests are
answered meanwhile."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.harm import unharmed
from tests.e2e.processes import until
from tests.e2e.service import Json, serving

NUMBERS = 99_000
"""As many values as a request body may have, about."""


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

        unharmed(service, attack)


def of_nodes(*nodes: Json, edges: Sequence[Json] = ()) -> Json:
    return {"name": "faulty", "nodes": [{"id": "start", "kind": "entrypoint"}, *nodes], "edges": list(edges)}


FAULTY: dict[str, Json] = {
    "unknown fields": of_nodes(
        {"id": "a", "kind": "transform", "config": {f"expressio{number}": 1 for number in range(90_000)}}
    ),
    "similar ids": of_nodes(
        *(transform(f"{'ab' * 90}{number}", "@", f"{{{{{'ba' * 95}}}}}") for number in range(490)),
        edges=[{"source": f"{'ba' * 95}{number % 9}", "target": f"{'ab' * 90}x"} for number in range(5_000)],
    ),
    "similar short ids": of_nodes(
        *(transform(f"{'ab' * 28}{number}", "@", f"{{{{{'ba' * 30}}}}}") for number in range(490)),
        edges=[{"source": f"{'ba' * 30}{number % 9}", "target": f"{'ab' * 28}x"} for number in range(5_000)],
    ),
}


@pytest.mark.requirement("F4", "C6")
@pytest.mark.parametrize("definition", FAULTY.values(), ids=FAULTY)
def test_a_workflow_with_many_faults_is_answered_with_few_and_holds_up_nobody(tmp_path: Path, definition: Json) -> None:
    with serving(tmp_path / "home") as service:
        answers: list[Json] = []

        def attack() -> None:
            answers.append(service.call("POST", "/workflows/validate", definition))

        unharmed(service, attack)
        assert 20 < len(answers[0]["errors"]) <= 201


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    "expression",
    [
        "[" + ",".join(["sum(a)"] * 580) + "]",
        "[" + ",".join(["sort(a)"] * 500) + "]",
    ],
    ids=["sum", "sort"],
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

        unharmed(service, attack)
        assert ended["status"] == "failed"
