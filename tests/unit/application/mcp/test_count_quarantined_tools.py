"""CountQuarantinedTools: how many tools wait for a person, for everyone who may see them."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.mcp.describe_mcp_servers import QuarantineCounts
from application.mcp.queries import CountQuarantinedTools
from domain.identity.role import Role
from tests.builders import ORG, SERVER
from tests.unit.application.actors import a_principal


@pytest.mark.requirement("U6")
async def test_the_numbers_are_those_of_the_callers_organization_and_teams(mocker: MockerFixture) -> None:
    counts = mocker.create_autospec(QuarantineCounts, instance=True)
    counts.awaiting.return_value = {SERVER: 2}
    count = CountQuarantinedTools(quarantine_counts=counts)
    caller = replace(a_principal(Role.VIEWER), teams=frozenset({"sales"}))
    assert await count.execute(caller) == {SERVER: 2}
    counts.awaiting.assert_awaited_once_with(ORG, teams=frozenset({"sales"}))
