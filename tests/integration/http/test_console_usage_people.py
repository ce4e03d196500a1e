"""Usage by who started runs, in the console: sums with names, a chart, and a table for
spreadsheets."""

import csv
import re
from datetime import UTC
from io import StringIO

import pytest

from domain.identity.role import Role
from domain.runs.usage import ModelSpending
from tests.composition import MODEL
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.run_builders import some_usage

pytestmark = pytest.mark.requirement("U6")
PART = "/console/parts/usage-people"
TABLE = "/console/usage-people.csv"


async def with_runs(service: Service) -> dict[str, str]:
    """A browser, and runs that an admin and a runner started, each with one model call."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    for role, count in ((Role.ADMIN, 2), (Role.RUNNER, 1)):
        for _ in range(count):
            body = {"agent": "guide", "input": "hello"}
            started = await service.call("POST", "/v1/runs/wait", json=body, token=token_of(role))
            assert started.status_code == 200, started.text
    spent = ModelSpending(model=MODEL, usage=some_usage(), at=service.clock.now())
    service.state.spent.extend((stored.run, spent) for stored in service.state.runs.values())
    return await signed_in(service)


def today(service: Service) -> str:
    return service.clock.now().astimezone(UTC).date().isoformat()


async def test_the_page_fetches_sums_of_the_same_period_by_who_started_runs(service: Service) -> None:
    browser = await with_runs(service)
    page = (await browse(service, "GET", f"/console/usage?since={today(service)}", headers=browser)).text
    found = re.search(rf'hx-get="({PART}\?since={today(service)}&amp;until=[^"]+)"', page)
    assert found is not None
    part = (await browse(service, "GET", found[1].replace("&amp;", "&"), headers=browser)).text
    rows = re.findall(r'<th scope="row" title="([^"]+)">([^<]+)</th>.*?<td class="number">(\d+)</td></tr>', part)
    assert {(key.startswith("key_"), int(calls)) for key, _, calls in rows} == {(True, 2), (True, 1)}
    assert all(name != key for key, name, _ in rows)


async def test_the_sums_are_a_table_for_spreadsheets(service: Service) -> None:
    browser = await with_runs(service)
    answer = await browse(service, "GET", TABLE, headers=browser)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert sorted(int(row["model_calls"]) for row in rows) == [1, 2]
    assert answer.headers["content-disposition"] == 'attachment; filename="usage-people.csv"'
    assert [*rows[0]] == ["started_by", "name", "model_calls", "input_tokens", "output_tokens", "cost_usd"]


async def test_other_days_agents_and_models_are_left_out_and_no_day_is_refused(service: Service) -> None:
    browser = await with_runs(service)
    for query in ("until=2001-01-01", "agent=agt_none", "model=none:none"):
        assert "No usage." in (await browse(service, "GET", f"{PART}?{query}", headers=browser)).text
    assert (await browse(service, "GET", f"{PART}?since=soon", headers=browser)).status_code == 422
