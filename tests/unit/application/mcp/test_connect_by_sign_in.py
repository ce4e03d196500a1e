"""ConnectBySignIn: for which servers a sign-in is the account, and what continues."""

import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture, MockType

from application.identity.ports import FinishedSignIn, SignInTokens
from application.mcp.account_connected import AccountConnected
from application.mcp.authorization import McpAuthorizer, PersonSignIn
from application.mcp.connect_by_sign_in import ConnectBySignIn
from domain.audit.event import AuditAction
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from tests.builders import OTHER_ORG, START, after
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import a_person_server, a_state_with_servers, an_on_behalf_server
from tests.people_builders import ISSUER, PROVIDER, a_provider, a_user
from tests.refusals import storage_away

pytestmark = pytest.mark.requirement("P4")

TOKENS = SignInTokens(id_token="id.token.sig", access_token="access", access_token_lasts_s=60)
FINISHED = FinishedSignIn(user=a_user(), provider=a_provider(), tokens=TOKENS, id_token_expires_at=after(300))
SIGN_IN = PersonSignIn(
    provider_id=PROVIDER,
    issuer=ISSUER,
    id_token="id.token.sig",
    id_token_expires_at=after(300),
    access_token="access",
    access_token_expires_at=START + timedelta(seconds=60),
)
BY_CONSENT = replace(a_person_server(), id=McpServerId("mcp_consent"))
DISABLED = an_on_behalf_server(McpServerId("mcp_disabled"), slug="disabled", enabled=False)
ELSEWHERE = replace(an_on_behalf_server(McpServerId("mcp_elsewhere")), organization_id=OTHER_ORG)


class Ports:
    def __init__(self, mocker: MockerFixture, *servers: McpServer) -> None:
        self.state = a_state_with_servers(*servers)
        self.authorizer: MockType = mocker.create_autospec(McpAuthorizer, instance=True)
        self.authorizer.signed_in.return_value = True
        self.accounts: MockType = mocker.create_autospec(AccountConnected, instance=True)

    async def signed_in(self, finished: FinishedSignIn = FINISHED) -> None:
        await ConnectBySignIn(
            servers=InMemoryMcpServerStore(self.state),
            authorizer=self.authorizer,
            accounts=self.accounts,
            audit_log=InMemoryAuditLog(self.state),
            clock=FixedClock(),
            ids=SequentialIds(),
        ).signed_in(finished)


async def test_a_sign_in_is_stored_for_servers_on_behalf_of_people_and_what_waits_continues(
    mocker: MockerFixture,
) -> None:
    ports = Ports(mocker, an_on_behalf_server(), BY_CONSENT, DISABLED, ELSEWHERE)
    await ports.signed_in()
    acting = an_on_behalf_server().acting_for(a_user().id)
    ports.authorizer.signed_in.assert_awaited_once_with(acting, SIGN_IN)
    ports.accounts.continue_what_waits.assert_awaited_once_with(acting, had_account=False)


async def test_without_such_a_server_no_token_is_stored(mocker: MockerFixture) -> None:
    ports = Ports(mocker, BY_CONSENT, DISABLED, ELSEWHERE)
    await ports.signed_in()
    ports.authorizer.signed_in.assert_not_awaited()
    assert ports.state.audit == {}


async def test_an_access_token_without_a_lifetime_has_no_end_and_is_not_taken_for_one(mocker: MockerFixture) -> None:
    ports = Ports(mocker, an_on_behalf_server())
    await ports.signed_in(replace(FINISHED, tokens=replace(TOKENS, access_token_lasts_s=None)))
    assert ports.authorizer.signed_in.await_args.args[1].access_token_expires_at is None


async def test_each_connected_account_is_audited_without_its_token(mocker: MockerFixture) -> None:
    ports = Ports(mocker, an_on_behalf_server())
    await ports.signed_in()
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.server_id) == (
        AuditAction.ACCOUNT_CONNECTED,
        a_user().actor,
        an_on_behalf_server().id,
    )
    assert "id.token.sig" not in repr(entry)


async def test_a_sign_in_without_the_token_that_a_server_needs_continues_nothing(mocker: MockerFixture) -> None:
    ports = Ports(mocker, an_on_behalf_server())
    ports.authorizer.signed_in.return_value = False
    await ports.signed_in()
    ports.accounts.continue_what_waits.assert_not_awaited()
    assert ports.state.audit == {}


async def test_a_failure_refuses_no_sign_in_and_is_logged_without_tokens(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    ports = Ports(mocker, an_on_behalf_server())
    ports.authorizer.signed_in.side_effect = storage_away()
    with caplog.at_level(logging.WARNING):
        await ports.signed_in()
    assert caplog.messages == ["a sign-in did not connect the accounts of its person"]
    assert "id.token.sig" not in caplog.text
