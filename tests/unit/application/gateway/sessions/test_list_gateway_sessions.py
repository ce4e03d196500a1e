"""ListGatewaySessions: who sees which sessions."""

import pytest
from pytest_mock import MockerFixture

from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.queries import ListGatewaySessions
from application.system.pages import PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.builders import ORG, START
from tests.doubles.gateway import InMemoryGatewaySessionStore
from tests.gateway_builders import a_gateway_session, a_state_with
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger

ENDED = a_gateway_session(revoked_at=START)


@pytest.mark.requirement("F5")
async def test_operators_see_the_sessions_of_their_organization_ended_ones_too() -> None:
    sessions = ListGatewaySessions(sessions=InMemoryGatewaySessionStore(a_state_with(ENDED)))

    assert (await sessions.execute(principal=a_principal(Role.OPERATOR), page=PageRequest(limit=10))).items == (ENDED,)
    assert (await sessions.execute(principal=a_stranger(), page=PageRequest(limit=10))).items == ()


@pytest.mark.requirement("P5")
async def test_a_runner_sees_the_sessions_that_they_opened() -> None:
    sessions = ListGatewaySessions(sessions=InMemoryGatewaySessionStore(a_state_with(ENDED)))
    opener = Principal(organization_id=ORG, key_id=ENDED.created_by, role=Role.RUNNER)

    assert (await sessions.execute(principal=opener, page=PageRequest(limit=10))).items == (ENDED,)
    assert (await sessions.execute(principal=a_principal(Role.RUNNER), page=PageRequest(limit=10))).items == ()


@pytest.mark.requirement("F5")
async def test_a_viewer_sees_no_sessions(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(GatewaySessionStore, instance=True)

    with refused("role_insufficient"):
        await ListGatewaySessions(sessions=store).execute(
            principal=a_principal(Role.VIEWER), page=PageRequest(limit=10)
        )

    store.page.assert_not_awaited()


async def test_storage_that_is_away_is_no_empty_list(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(GatewaySessionStore, instance=True)
    store.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListGatewaySessions(sessions=store).execute(principal=a_principal(), page=PageRequest(limit=10))
