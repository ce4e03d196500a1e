"""The history of the inbox: what people decided of each kind, who, when and with which answer."""

import re

import pytest

from tests.integration.http.asking_workflows import a_workflow, an_asking_run
from tests.integration.http.service import OTHER_ADMIN, Service
from tests.integration.http.test_canaries import a_halted_run
from tests.integration.http.test_console import waiting_run
from tests.integration.http.test_console_inbox import changed_tools, page, send

pytestmark = pytest.mark.requirement("U6")
PATH = "/inbox/decided"


def kinds_in(shown: str) -> list[str]:
    rows = shown.partition("<tbody>")[2].partition("</tbody>")[0].split("<tr>")[1:]
    return [row.split("<td>")[1].partition("</td>")[0] for row in rows]


async def test_an_approval_is_told_with_its_arguments_who_decided_and_why(service: Service) -> None:
    _, approval = await waiting_run(service)
    assert "Nothing has been decided yet." in await page(service, PATH)
    await send(service, f"/inbox/approvals/{approval}", decision="deny", reason="Not on a Sunday.")
    shown = await page(service, PATH)
    assert "Not on a Sunday." in shown
    assert 'class="status denied">denied' in shown
    assert kinds_in(shown) == ["approval"]
    assert "Nothing has been decided yet." in await page(service, PATH, OTHER_ADMIN)


async def test_an_answer_to_a_workflow_is_told_with_its_question(service: Service) -> None:
    await a_workflow(service)
    run = await an_asking_run(service, "Refund 50 for order 17?", {"enum": ["all of it", "none"]})
    await send(service, f"/workflows/runs/{run}/answer", node_id="approve", answer='"all of it"')
    shown = await page(service, PATH)
    assert kinds_in(shown) == ["workflow question"]
    assert "Refund 50 for order 17?" in shown
    assert "approve of the workflow refunds" in shown
    assert '"all of it"' in shown


async def test_tools_and_threads_in_quarantine_are_told_by_kind_and_day(service: Service) -> None:
    digests = await changed_tools(service, "echo", "zip")
    await send(service, "/servers/files/reject", tool="echo", digest=digests["echo"], reason="It tells all.")
    await send(service, "/servers/files/approve", tool="zip", digest=digests["zip"])
    thread = (await a_halted_run(service))["thread_id"]
    await send(service, f"/threads/{thread}/release")
    shown = await page(service, PATH)
    assert sorted(kinds_in(shown)) == ["thread in quarantine", "tool in quarantine", "tool in quarantine"]
    assert re.search(r'class="status denied">rejected.*It tells all\.', shown, re.DOTALL)
    assert f'href="/console/threads/{thread}"' in shown
    assert kinds_in(await page(service, f"{PATH}?kind=thread")) == ["thread in quarantine"]
    assert "Nothing that matches" in await page(service, f"{PATH}?kind=approval")
    assert "Nothing that matches" in await page(service, f"{PATH}?until=2001-01-01")
    assert "is not a day" in await page(service, f"{PATH}?since=yesterday")
    assert "is not a kind" in await page(service, f"{PATH}?kind=everything")


async def test_older_decisions_are_on_further_pages(service: Service) -> None:
    names = [f"tool_{number:02}" for number in range(52)]
    for name, digest in (await changed_tools(service, *names)).items():
        await send(service, "/servers/files/approve", tool=name, digest=digest)
    shown = await page(service, f"{PATH}?kind=tool")
    assert len(kinds_in(shown)) == 50
    older = re.search(r'href="/console(/inbox/decided\?kind=tool&cursor=[^"]+)">Older decisions', shown)
    assert older is not None
    assert len(kinds_in(await page(service, older[1]))) == 2


async def test_an_approval_that_ended_with_its_run_is_told_by_its_kind_and_day(service: Service) -> None:
    run, _ = await waiting_run(service)
    await send(service, f"/runs/{run}/cancel")
    assert "Nothing has been decided yet." in await page(service, PATH)
    shown = await page(service, f"{PATH}?kind=cancelled")
    assert kinds_in(shown) == ["approval"]
    assert f'href="/console/runs/{run}"' in shown
    assert 'class="status skipped">ended with its run' in shown
    assert "no one" in shown
    for query in ("kind=stale", "kind=cancelled&until=2001-01-01", "kind=cancelled&since=2101-01-01"):
        assert "Nothing that matches" in await page(service, f"{PATH}?{query}")
    assert "Nothing that matches" in await page(service, f"{PATH}?kind=cancelled", OTHER_ADMIN)
