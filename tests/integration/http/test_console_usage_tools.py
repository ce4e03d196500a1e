"""Usage by tool, in the console: sums, a chart, and a table for spreadsheets."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from io import StringIO

import pytest

from domain.audit.event import AuditAction
from tests.builders import an_audit_event
from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("U6")
PART = "/console/parts/usage-tools"
TABLE = "/console/usage-tools.csv"


def sealed_calls(service: Service, days: Sequence[int] = (0,)) -> date:
    """Two calls of one tool and a failed one of another on each of the days before today, which are
    sealed."""
    now = service.clock.now()
    executed, failed = AuditAction.TOOL_EXECUTED, AuditAction.TOOL_FAILED
    for before in days:
        for tool, action in (("mcp__crm__find", executed), ("mcp__crm__find", executed), ("=evil", failed)):
            event = replace(an_audit_event(1), action=action, tool=tool, duration_ms=250)
            service.state.sealed_entries.append(replace(event, at=now - timedelta(days=before)))
    return now.date()


async def test_the_page_fetches_a_chart_and_sums_of_the_calls_of_its_period(service: Service) -> None:
    today = sealed_calls(service)
    browser = await signed_in(service)
    page = (await browse(service, "GET", f"/console/usage?since={today}&until={today}", headers=browser)).text
    found = re.search(rf'hx-get="({PART}\?since={today}&amp;until=[^"]+)"', page)
    assert found is not None
    part = (await browse(service, "GET", found[1].replace("&amp;", "&"), headers=browser)).text
    rows = re.findall(r'<th scope="row" class="mono">([^<]+)</th>' + r'<td class="number">([^<]+)</td>' * 5, part)
    assert rows == [
        ("mcp__crm__find", "2", "0", "0", "250 ms", "500 ms"),
        ("=evil", "1", "1", "0", "250 ms", "250 ms"),
    ]
    assert f'aria-label="Calls by day and tool: at most 3 calls, on {today}"' in part
    assert "Counted since" not in part


async def test_a_period_from_before_counting_began_says_since_when(service: Service) -> None:
    today = sealed_calls(service, days=(3, 0))
    browser = await signed_in(service)
    part = (await browse(service, "GET", PART, headers=browser)).text
    assert f"Counted since {today - timedelta(days=3)} (UTC)." in part
    of_agent = (await browse(service, "GET", f"{PART}?agent=agt_none", headers=browser)).text
    assert "of all agents and models" in of_agent


async def test_calls_are_a_table_for_spreadsheets_in_which_no_name_is_a_formula(service: Service) -> None:
    today = sealed_calls(service, days=(1, 0))
    browser = await signed_in(service)
    answer = await browse(service, "GET", TABLE, headers=browser)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [(row["day"], row["tool"], row["calls"], row["failed_calls"], row["duration_ms"]) for row in rows] == [
        (str(today), "'=evil", "1", "1", "250"),
        (str(today), "mcp__crm__find", "2", "0", "500"),
        (str(today - timedelta(days=1)), "'=evil", "1", "1", "250"),
        (str(today - timedelta(days=1)), "mcp__crm__find", "2", "0", "500"),
    ]


async def test_without_calls_the_part_says_so_and_a_wrong_day_is_refused(service: Service) -> None:
    browser = await signed_in(service)
    assert "No calls." in (await browse(service, "GET", PART, headers=browser)).text
    assert (await browse(service, "GET", f"{PART}?since=soon", headers=browser)).status_code == 422
