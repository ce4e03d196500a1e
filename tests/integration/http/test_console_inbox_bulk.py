"""Many items of the inbox at a time: calls, tools in quarantine, and questions that one node asks
in many runs."""

import re

import pytest

from domain.identity.role import Role
from domain.json_value import JsonValue
from tests.integration.http.asking_workflows import a_workflow, an_asking_run
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import signed_in, waiting_run
from tests.integration.http.test_console_inbox import changed_tools, page
from tests.integration.http.test_quarantine import listed

pytestmark = pytest.mark.requirement("U6")
YES_OR_NO: JsonValue = {"type": "boolean"}


async def bulk(service: Service, decision: str, *items: str, token: str | None = None, answer: str = "") -> str:
    headers = await signed_in(service, token)
    form = {"decision": decision, "item": list(items), "answer": answer}
    sent = await service.client.post("/console/inbox/bulk", headers=headers, data=form)
    assert (sent.status_code, sent.headers.get("hx-trigger")) == (200, "item-settled"), sent.text
    return sent.text


async def states(service: Service) -> dict[str, str]:
    tools = (await service.call("GET", "/v1/mcp-servers/files/tools")).json()["data"]
    return {tool["name"]: tool["state"] for tool in tools}


async def test_calls_and_tools_are_approved_together_as_they_are_shown(service: Service) -> None:
    _, approval = await waiting_run(service)
    digests = await changed_tools(service, "echo", "zip")
    shown = await page(service, "/inbox")
    chosen = [f"approval:{approval}", f"tool:files:echo#{digests['echo']}"]
    assert all(f'value="{each}"' in shown for each in chosen)
    answer = await bulk(service, "approve", *chosen, "tool:files:zip#sha256:another")
    assert "2 approved" in answer
    assert "zip of files: The definition of the tool" in answer
    assert await states(service) == {"echo": "approved", "zip": "quarantined"}
    assert (await service.call("GET", f"/v1/approvals/{approval}")).json()["state"] == "approved"


async def test_tools_are_rejected_together_by_those_who_may(service: Service) -> None:
    digests = await changed_tools(service, "echo", "zip")
    chosen = [f"tool:files:{name}#{digest}" for name, digest in digests.items()]
    operator = token_of(Role.OPERATOR)
    assert 'name="item"' not in await page(service, "/inbox", operator)
    assert "0 denied" in await bulk(service, "deny", *chosen, token=operator)
    assert "2 denied" in await bulk(service, "deny", *chosen)
    assert await states(service) == {"echo": "rejected", "zip": "rejected"}
    assert "Nothing waits for a person" in await page(service, "/parts/inbox")


async def test_a_decided_call_is_told_by_its_tool(service: Service) -> None:
    _, approval = await waiting_run(service)
    await bulk(service, "deny", f"approval:{approval}")
    tool = (await service.call("GET", f"/v1/approvals/{approval}")).json()["tool"]
    answer = await bulk(service, "deny", f"approval:{approval}")
    assert "0 denied" in answer
    assert f"<li>{tool}: " in answer


async def test_questions_of_one_node_are_answered_alike_and_others_are_left(service: Service) -> None:
    await a_workflow(service)
    await a_workflow(service, "holidays")
    first = await an_asking_run(service, "Refund order 17?", YES_OR_NO)
    second = await an_asking_run(service, "Refund order 18?", YES_OR_NO)
    other = await an_asking_run(service, "Three weeks off?", YES_OR_NO, workflow="holidays")
    workflow = (await service.call("GET", f"/v1/workflow-runs/{first}")).json()["workflow_id"]
    value = f"{workflow}:approve:true"
    shown = await page(service, "/inbox")
    assert f'<option value="{value}">yes</option>' in shown
    assert 'optgroup label="node approve of the workflow refunds"' in shown
    assert f'name="item" value="node:{other}:approve"' not in shown
    items = [f"node:{run}:approve" for run in (first, second, other)]
    assert "0 answered" in await bulk(service, "answer", *items, answer=f"{workflow}:approve:7")
    answer = await bulk(service, "answer", *items, "node:wfr_gone:approve", answer=value)
    assert "2 answered" in answer
    assert "Three weeks off?: it asks something else" in answer
    assert "approve: it does not wait any more" in answer
    runs = [(await service.call("GET", f"/v1/workflow-runs/{run}")).json() for run in (first, second, other)]
    assert [run["status"] for run in runs] == ["queued", "queued", "requires_action"]


async def test_without_an_answer_none_is_given(service: Service) -> None:
    headers = await signed_in(service)
    form = {"decision": "answer", "item": ["node:wfr_1:approve"], "answer": ""}
    assert (await service.client.post("/console/inbox/bulk", headers=headers, data=form)).status_code == 422
    form = {"decision": "perhaps", "item": ["node:wfr_1:approve"]}
    assert (await service.client.post("/console/inbox/bulk", headers=headers, data=form)).status_code == 422


async def test_a_single_question_is_answered_by_itself(service: Service) -> None:
    await a_workflow(service)
    run = await an_asking_run(service, "Refund order 17?", YES_OR_NO)
    shown = await page(service, f"/inbox?item=node:{run}:approve")
    assert "Answer chosen" not in shown
    assert "node approve of the workflow refunds" in shown
    assert "waits without an end" in shown
    assert ">17</dd>" in shown, "the input of the run is its context"


async def test_a_row_has_the_id_of_what_is_chosen_and_another_once_its_tool_changes(service: Service) -> None:
    await waiting_run(service)
    await changed_tools(service, "echo", "zip")

    async def rows() -> dict[str, tuple[str, str]]:
        found = re.findall(
            r'<li id="(\S+)" data-key="(\S+)">\s*<input type="checkbox" id="(\S+)"', await page(service, "/parts/inbox")
        )
        return {key: (row, box) for row, key, box in found}

    before = await rows()
    assert len({each for pair in before.values() for each in pair}) == 2 * len(before) == 6
    await listed(service, echo="Newer.", zip="New.")
    after = await rows()
    assert [key for key in before if before[key] != after[key]] == ["tool:files:echo"]
    assert not set(before["tool:files:echo"]) & set(after["tool:files:echo"])


async def test_a_reason_has_a_field_of_the_definition_that_it_is_about(service: Service) -> None:
    await changed_tools(service, "echo", "zip")

    async def fields() -> list[str]:
        shown = await page(service, "/servers/files")
        labels, inputs = re.findall(r'label for="(reason-\S+)"', shown), re.findall(r'input id="(reason-\S+)"', shown)
        assert labels == inputs
        return inputs

    echo, zip_ = await fields()
    await listed(service, echo="Newer.", zip="New.")
    newer, same = await fields()
    assert (same, len({echo, zip_, newer})) == (zip_, 3)
