"""Usage by who started runs: sums of pages of runs, and what is said of those left out."""

import csv
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from itertools import repeat

import pytest
from pytest_mock import MockerFixture

from application.runs.queries import ListRuns
from application.system.pages import Page
from domain.ids import ApiKeyId
from domain.runs.usage import Usage
from interfaces.console.form_values import FormValues
from interfaces.console.run_starters import RunStarters
from interfaces.console.usage_people import MOST_RUNS, UsagePeople
from tests.builders import START, a_run
from tests.doubles.surroundings import FixedClock
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")
SPENT = Usage(input_tokens=3, output_tokens=2, cost_usd=Decimal("0.5"))
RUN = replace(a_run(), requested_by=ApiKeyId("key_1"), usage=SPENT)
ASKED = FormValues({"since": f"{START:%Y-%m-%d}", "until": f"{START:%Y-%m-%d}", "agent": "", "model": ""})


class People:
    """Runs in pages, and names."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.list_runs = mocker.create_autospec(ListRuns, instance=True)
        starters = mocker.create_autospec(RunStarters, instance=True)
        starters.names.return_value = {"key_1": "laptop"}
        self.pages = UsagePeople(list_runs=self.list_runs, run_starters=starters, clock=FixedClock())


@pytest.fixture
def people(mocker: MockerFixture) -> People:
    return People(mocker)


def rows(table: str) -> list[tuple[str, ...]]:
    columns = ("started_by", "name", "runs", "input_tokens", "cost_usd")
    return [tuple(row[column] for column in columns) for row in csv.DictReader(StringIO(table))]


async def test_pages_of_runs_are_summed_by_who_started_them(people: People) -> None:
    nobodys = replace(RUN, requested_by=None, usage=Usage(input_tokens=9))
    people.list_runs.execute.side_effect = [Page(items=(RUN, nobodys), next_cursor="2"), Page(items=(RUN,))]
    name, table = await people.pages.table(a_principal(), ASKED)
    assert rows(table) == [("key_1", "laptop", "2", "6", "1.0"), ("", "–", "1", "9", "0")]
    assert name == "usage-people.csv"


async def test_the_name_of_the_table_says_that_runs_were_left_out_also_behind_short_pages(people: People) -> None:
    short = Page(items=(*repeat(RUN, 300),), next_cursor="more")
    last = Page(items=(*repeat(RUN, 200),), next_cursor="more")
    people.list_runs.execute.side_effect = [*repeat(short, 6), last]
    name, table = await people.pages.table(a_principal(), ASKED)
    assert (name, [each[2] for each in rows(table)]) == ("usage-people-newest-2000.csv", [str(MOST_RUNS)])
