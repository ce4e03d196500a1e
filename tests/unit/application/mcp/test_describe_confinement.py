"""DescribeConfinement: who may read how started servers are confined."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import ConfinementReport
from application.mcp.queries import DescribeConfinement
from domain.identity.role import Role
from tests.refusals import refused
from tests.unit.application.actors import a_principal, roles_below

pytestmark = pytest.mark.requirement("S1")


async def test_an_operator_reads_how_servers_are_confined_and_others_do_not(mocker: MockerFixture) -> None:
    report = mocker.create_autospec(ConfinementReport, instance=True)
    report.describe.return_value = "Landlock"
    describing = DescribeConfinement(confinement=report)
    assert await describing.execute(a_principal(Role.OPERATOR)) == "Landlock"
    for role in roles_below(Role.OPERATOR):
        with refused("role_insufficient"):
            await describing.execute(a_principal(role))
