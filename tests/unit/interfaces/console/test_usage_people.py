"""Usage by who started runs: sums with names, the dearest first."""

import csv
from dataclasses import replace
from io import StringIO

import pytest
from pytest_mock import MockerFixture

from application.usage.queries import GetUsage
from domain.ids import ApiKeyId
from domain.runs.usage import ModelSpending
from interfaces.console.form_values import FormValues
from interfaces.console.run_starters import RunStarters
from interfaces.console.usage_people import UsagePeople
from tests.builders import START, a_run
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.doubles.usage import InMemoryUsageStore
from tests.run_builders import some_usage
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")
ASKED = FormValues({"since": f"{START:%Y-%m-%d}", "until": f"{START:%Y-%m-%d}", "agent": "", "model": ""})


async def test_the_dearest_is_first_and_a_name_is_no_formula_of_a_spreadsheet(mocker: MockerFixture) -> None:
    state = InMemoryState()
    for starter, cost in (("key_1", "0.5"), ("usr_1", "2"), ("key_1", "0.5")):
        spent = ModelSpending(model="openai:a", usage=some_usage(3, 2, cost_usd=cost), at=START)
        state.spent.append((replace(a_run(), requested_by=ApiKeyId(starter)), spent))
    starters = mocker.create_autospec(RunStarters, instance=True)
    starters.names.return_value = {"key_1": "=laptop", "usr_1": "Ada"}
    people = UsagePeople(
        get_usage=GetUsage(reports=InMemoryUsageStore(state)), run_starters=starters, clock=FixedClock()
    )

    rows = list(csv.DictReader(StringIO(await people.table(a_principal(), ASKED))))

    columns = ("started_by", "name", "model_calls", "input_tokens", "cost_usd")
    assert [tuple(row[column] for column in columns) for row in rows] == [
        ("usr_1", "Ada", "1", "3", "2"),
        ("key_1", "'=laptop", "2", "6", "1.0"),
    ]
