"""The list of runs: who started them, filters in the address, actions on many."""

import csv
import html
import json
import re
from dataclasses import replace
from decimal import Decimal
from io import StringIO

import httpx
import pytest

from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.run import RunError, RunStatus
from domain.runs.usage import Usage
from interfaces.console.routes.run_list import PAGE
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_runs import ended_run

pytestmark = pytest.mark.requirement("U6")

FAILED = RunError(code="tool_limit", detail="It called too many tools.")


async def started(service: Service, text: str, **settings: object) -> str:
    """A run that waits for its worker: its id."""
    service.worker.act = Act.REST
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    return str(
        (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": text, **settings})).json()["id"]
    )


async def listed(service: Service, query: str = "") -> str:
    return (await browse(service, "GET", f"/console/runs{query}", headers=await signed_in(service))).text


async def test_runs_are_listed_by_what_they_were_asked_with_who_started_them_and_their_error(service: Service) -> None:
    await started(service, "Count the\n  apples & pears")
    run_id = await ended_run(service, RunStatus.FAILED, error=FAILED)
    page = await listed(service)
    assert ">Count the apples &amp; pears</a>" in page
    assert f'href="/console/runs/{run_id}"' in page
    assert '<small title="tool_limit: It called too many tools.">tool limit</small>' in page


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("text=APPLES", True),
        ("text=plums", False),
        ("metadata=ticket%3D7", True),
        ("metadata=ticket%3D8", False),
        ("status=queued&agent=&text=apples&since=2000-01-01&until=2999-01-01", True),
        ("until=2000-01-01", False),
        ("tool=website_content", False),
        ("error=tool_limit", False),
        ("model=none", False),
    ],
)
async def test_the_address_has_the_filters(service: Service, query: str, *, is_found: bool) -> None:
    await started(service, "Count the apples", metadata={"ticket": 7})
    assert ("Count the apples" in await listed(service, f"?{query}")) is is_found


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("status=faild", "“faild” is not a state of runs."),
        ("since=2026-13-01", "“2026-13-01” is not a day as YYYY-MM-DD."),
        ("until=never", "“never” is not a day as YYYY-MM-DD."),
        ("metadata=ticket", "Metadata is searched as NAME=VALUE."),
        ("metadata=%3D7", "Metadata needs a name, as NAME=VALUE."),
        ("order=fastest", "“fastest” is not an order of runs."),
        ("column=agent&column=colour", "“colour” is not a column."),
    ],
)
async def test_a_filter_that_is_wrong_is_said_and_shows_no_runs(service: Service, query: str, fault: str) -> None:
    await started(service, "Count the apples", metadata={"ticket": 7})
    page = await listed(service, f"?{query}")
    assert "/console/runs/export" not in page
    assert (
        await browse(service, "GET", f"/console/runs/export?{query}", headers=await signed_in(service))
    ).status_code == 422
    assert fault in page
    assert "Count the apples" not in page


async def test_actions_on_many_runs_are_asked_about(service: Service) -> None:
    await started(service, "Count the apples")
    page = await listed(service)
    assert 'hx-confirm="Retry the chosen runs?"' in page
    assert 'hx-confirm="Cancel the chosen runs?"' in page


async def test_a_list_that_searches_texts_does_not_refresh_itself(service: Service) -> None:
    run_id = await started(service, "Count the apples")
    assert 'hx-trigger="every 10s, runs-changed' in await listed(service, "?status=queued")
    for query in ("text=apples", "tool=website_content", "metadata=ticket%3D7"):
        page = await listed(service, f"?{query}")
        assert 'hx-trigger="runs-changed' in page
        assert "searched in the newest 10,000 runs" in page
    assert run_id in await listed(service)


async def test_a_list_of_runs_that_no_index_has_does_not_refresh_itself_either(service: Service) -> None:
    for query in ("error=model_timeout", "started_by=key_1"):
        assert 'hx-trigger="every 10s, runs-changed' in await listed(service, f"?{query}")
    for query in ("error=model_timeout&started_by=key_1", "started_by=key_1&status=failed", "model=openai%3Agpt-5"):
        page = await listed(service, f"?{query}")
        assert 'hx-trigger="runs-changed' in page
        assert "What is found is counted in the newest 10,000 runs. The list does not refresh itself." in page


@pytest.mark.parametrize(
    "page", ["agents", "gateway", "runs", "schedules", "servers", "threads", "workflows", "budgets", "sessions"]
)
async def test_lists_refresh_themselves_each_by_its_own_part(service: Service, page: str) -> None:
    shown = await browse(service, "GET", f"/console/{page}?shown=here", headers=await signed_in(service))
    assert f'<div id="list" hx-get="/console/{page}?shown=here" hx-trigger="every 1' in shown.text
    assert 'hx-select="#list" hx-swap="outerMorph"' in shown.text


@pytest.mark.parametrize(("page", "part"), [("keys", "key-list"), ("people", "user-list")])
async def test_lists_beside_forms_refresh_themselves_and_leave_messages_and_forms(
    service: Service, page: str, part: str
) -> None:
    shown = await browse(service, "GET", f"/console/{page}?shown=here", headers=await signed_in(service))
    asks = f'hx-get="/console/{page}?shown=here" hx-trigger="every 15s" hx-select="#{part}" hx-target="#{part}" hx-swap="outerMorph"'
    assert asks in shown.text
    assert shown.text.count(f'id="{part}"') == 1


async def test_the_api_has_the_same_filters(service: Service) -> None:
    run_id = await started(service, "Count the apples", metadata={"ticket": 7})
    for query, found in (
        ("search=APPLES&metadata=ticket=7&since=2000-01-01T00:00:00Z", [run_id]),
        ("search=pears", []),
        ("tool=website_content", []),
        ("error=timeout", []),
        ("until=2000-01-01T00:00:00", []),
        ("started_by=key_0", []),
    ):
        answer = (await service.call("GET", f"/v1/runs?{query}")).json()
        assert [run["id"] for run in answer["data"]] == found, query


async def test_many_runs_are_cancelled_or_retried_at_once_and_what_is_not_possible_is_said(service: Service) -> None:
    waiting, failed = await started(service, "Wait"), await ended_run(service, RunStatus.FAILED, error=FAILED)
    browser = await signed_in(service)

    async def act(action: str, *runs: str) -> httpx.Response:
        form = {"action": action, "run": list(runs)}
        return await service.client.post("/console/runs/bulk", headers=browser, data=form)

    cancelled = await act("cancel", waiting)
    assert "1 cancelled" in cancelled.text
    assert (await service.call("GET", f"/v1/runs/{waiting}")).json()["status"] == "cancelled"
    retried = await act("retry", failed, waiting)
    assert "1 retried" in retried.text
    assert "Wait: The run has not failed; only a failed run can be retried." in retried.text
    assert waiting not in retried.text
    assert "run_gone: There is no run" in html.unescape((await act("cancel", "run_gone")).text)
    assert "Choose runs in the list first." in (await act("retry")).text
    [retry] = [run for run in (await service.call("GET", "/v1/runs")).json()["data"] if run["retry_of"] == failed]
    assert f'<a href="/console/runs/{failed}">retry</a>' in await listed(service)
    assert retry["status"] == "queued"
    assert (await act("delete", failed)).status_code == 422


async def test_a_viewer_acts_on_no_run_and_a_failed_run_is_retried_on_its_page(service: Service) -> None:
    failed = await ended_run(service, RunStatus.FAILED, error=FAILED)
    viewer = await signed_in(service, token_of(Role.VIEWER))
    assert "/console/runs/bulk" not in (await browse(service, "GET", "/console/runs", headers=viewer)).text
    assert (await browse(service, "POST", f"/console/runs/{failed}/retry", headers=viewer)).status_code == 403
    answer = await browse(service, "POST", f"/console/runs/{failed}/retry", headers=await signed_in(service))
    assert answer.headers["hx-redirect"].startswith("/console/runs/run_")


def rows_of(page: str) -> list[str]:
    return re.findall(r'<tr id="row-(run_[^"]+)">', page)


async def test_the_list_is_sorted_by_a_column_whose_title_says_so(service: Service) -> None:
    runs = [await started(service, f"Count {number}") for number in range(3)]
    cheap, dear, free = (service.state.runs[RunId(run)] for run in runs)
    for stored, cost in ((cheap, "0.5"), (dear, "2"), (free, "0")):
        stored.run = replace(stored.run, usage=Usage(cost_usd=Decimal(cost), input_tokens=int(10 * Decimal(cost))))
    by_cost = await listed(service, "?order=costliest&status=queued")
    assert rows_of(by_cost) == [dear.run.id, cheap.run.id, free.run.id]
    assert 'aria-sort="descending"><a href="/console/runs?status=queued">Cost' in by_cost
    assert "The newest 10,000 runs are sorted." in by_cost
    assert '<a href="/console/runs?status=queued&amp;order=longest">Duration</a>' in by_cost
    assert ">Sort by duration</a>" in by_cost  # for phones, whose tables have no titles
    assert "<li>Sorted by cost</li>" in by_cost
    oldest = await listed(service, "?order=oldest")
    assert rows_of(oldest) == runs
    assert 'aria-sort="ascending"><a href="/console/runs?">Created' in oldest
    answer = (await service.call("GET", "/v1/runs?order=most_tokens&limit=2")).json()
    assert [run["id"] for run in answer["data"]] == [dear.run.id, cheap.run.id]
    rest = (await service.call("GET", f"/v1/runs?order=most_tokens&cursor={answer['next_cursor']}")).json()
    assert [run["id"] for run in rest["data"]] == [free.run.id]
    assert (await service.call("GET", "/v1/runs?order=fastest")).status_code == 422


async def test_the_address_has_the_columns(service: Service) -> None:
    await started(service, "Count the apples", metadata={"ticket": 7, "team": "north"})
    usual = await listed(service)
    assert "ticket: 7" not in usual
    assert ">Started by</th>" in usual
    chosen = await listed(service, "?column=metadata&column=tokens&column=thread")
    assert "<small>ticket: 7</small>" in chosen
    assert "<small>team: north</small>" in chosen
    assert ">Started by</th>" not in chosen
    assert 'href="/console/chat/thr_' in chosen
    assert '<a href="/console/runs?column=tokens&amp;column=thread">Hide metadata</a>' in chosen
    assert '<input type="hidden" name="column" value="tokens">' in chosen
    assert 'column=tokens&amp;column=created">Show tokens</a>' in usual
    assert 'href="/console/runs?order=most_tokens&amp;column=metadata&amp;column=tokens&amp;column=thread"' in chosen


async def test_matching_runs_are_counted(service: Service) -> None:
    for number in range(PAGE + 2):
        await started(service, f"Count {number}")
    page = await listed(service)
    assert f'id="count">{PAGE + 2} runs</p>' in page
    assert 'id="count">1 run found</p>' in await listed(service, "?text=Count+0")
    assert 'id="count"' not in await listed(service, "?text=nothing")
    assert (await service.call("GET", "/v1/runs/count?search=count&status=queued")).json() == {
        "count": PAGE + 2,
        "has_more": False,
    }


async def test_matching_runs_are_exported_as_a_table_and_as_lines_of_json(service: Service) -> None:
    await started(service, "Other")
    run_id = await started(service, '=1+2 the "apples",\n please', metadata={"ticket": 7})
    browser = await signed_in(service, token_of(Role.VIEWER))
    table = await browse(service, "GET", "/console/runs/export?text=apples", headers=browser)
    assert table.headers["content-type"].startswith("text/csv")
    assert table.headers["content-disposition"] == 'attachment; filename="runs.csv"'
    assert table.headers["x-content-type-options"] == "nosniff"
    [row] = csv.DictReader(StringIO(table.text))
    assert (row["id"], row["agent"], row["status"], row["metadata"]) == (run_id, "guide", "queued", '{"ticket":7}')
    assert row["input"] == '\'=1+2 the "apples", please'
    lines = await browse(service, "GET", "/console/runs/export?text=apples&as=ndjson", headers=browser)
    assert [json.loads(line)["id"] for line in lines.text.splitlines()] == [run_id]
    by_api = await service.call("GET", "/v1/runs/export?search=apples&format=csv")
    assert by_api.text == table.text
    everything = (await service.call("GET", "/v1/runs/export?order=oldest")).text.splitlines()
    assert [json.loads(line)["id"] for line in everything][-1] == run_id
    assert json.loads(everything[-1]) == (await service.call("GET", "/v1/runs?limit=1")).json()["data"][0]
