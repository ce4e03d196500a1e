"""GiveAccountSecrets: people give secrets for themselves, at the address that they were told."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.account_connected import AccountConnected
from application.mcp.give_account_secrets import GiveAccountSecrets, GiveAccountSecretsCommand
from application.mcp.list_accounts import ListedAccount
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.mcp.given_secrets import MAX_GIVEN_BYTES, AccountOwner
from domain.mcp.server import McpServer
from domain.secrets.secret import MAX_VALUE_BYTES
from tests.builders import ORG, OTHER_ORG
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.mcp_servers import InMemoryMcpServerStore
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.mcp_builders import (
    PERSON_SERVER,
    a_person_server,
    a_secrets_server,
    a_started_secrets_server,
    a_state_with_servers,
)
from tests.people_builders import USER, a_person, a_user
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("P3")

OWNER = AccountOwner(ORG, PERSON_SERVER, USER)
PLANTED = "s3cret-of-ann"


class Desk:
    """The server `tickets`, which takes `token` and `user` of each person."""

    def __init__(self, mocker: MockerFixture, server: McpServer | None = None) -> None:
        self.server = server or a_secrets_server("token", "user")
        self.state = a_state_with_servers(self.server)
        self.state.users[USER] = a_user()
        self.secrets = InMemoryPersonSecretStore(self.state)
        self.ids = SequentialIds()
        self.accounts: MockType = mocker.create_autospec(AccountConnected, instance=True)

    async def give(
        self,
        values: Mapping[str, str],
        *,
        by: Principal | None = None,
        address: str | None = None,
        offer: str | None = None,
    ) -> McpServer:
        giving = GiveAccountSecrets(
            servers=InMemoryMcpServerStore(self.state),
            person_secrets=self.secrets,
            accounts=self.accounts,
            audit_log=InMemoryAuditLog(self.state),
            clock=FixedClock(),
            ids=self.ids,
        )
        command = GiveAccountSecretsCommand(
            principal=by or a_person(), server="tickets", values=values, address=address, offer=offer
        )
        return await giving.execute(command)

    async def wrong(self, values: Mapping[str, str]) -> list[str]:
        with pytest.raises(ServiceError) as failed:
            await self.give(values)
        assert failed.value.code == "account_secrets_invalid"
        assert PLANTED not in repr(failed.value.violations)
        assert self.secrets.given == {}
        return [violation.path for violation in failed.value.violations]


@pytest.mark.parametrize("role", list(Role))
async def test_a_person_of_any_role_gives_their_own_and_what_waits_continues(mocker: MockerFixture, role: Role) -> None:
    desk = Desk(mocker)
    server = await desk.give({"token": PLANTED, "user": "ann"}, by=a_person(role))
    assert server == desk.server.acting_for(USER)
    assert desk.secrets.given[OWNER].of(desk.server.config) == {"token": PLANTED, "user": "ann"}
    desk.accounts.continue_what_waits.assert_awaited_once_with(server, had_account=False)
    desk.accounts.list_tools.assert_awaited_once_with(server)
    [entry] = desk.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.ACCOUNT_CONNECTED, USER, PERSON_SERVER)
    assert entry.details == {"slug": "tickets", "secrets": ["token", "user"]}
    assert PLANTED not in repr(entry)


async def test_what_is_not_given_again_stays_and_connections_of_others_too(
    mocker: MockerFixture,
) -> None:
    desk = Desk(mocker)
    await desk.give({"token": "old", "user": "ann"})
    before = desk.secrets.given[OWNER].revision
    server = await desk.give({"token": "new"})
    given = desk.secrets.given[OWNER]
    assert (given.values, given.revision != before) == ({"token": "new", "user": "ann"}, True)
    desk.accounts.continue_what_waits.assert_awaited_with(server, had_account=False)


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({}, ["secrets.token", "secrets.user"]),
        ({"token": PLANTED}, ["secrets.user"]),
        ({"token": PLANTED, "user": "u", "other": PLANTED}, ["secrets.other"]),
        ({"token": "", "user": "u"}, ["secrets.token"]),
        ({"token": f"{PLANTED}\r\nX-Evil: 1", "user": "u"}, ["secrets.token"]),
        ({"token": f"{PLANTED}\0", "user": "u"}, ["secrets.token"]),
        ({"token": "s" * (MAX_GIVEN_BYTES + 1), "user": "u"}, ["secrets.token"]),
        ({"token": "s" * (MAX_VALUE_BYTES + 1), "user": "u"}, ["secrets.token"]),
    ],
    ids=["none", "some", "unknown", "empty", "two lines", "nul", "large", "larger"],
)
async def test_what_the_server_cannot_use_is_refused_without_its_value(
    mocker: MockerFixture, values: dict[str, str], paths: list[str]
) -> None:
    assert await Desk(mocker).wrong(values) == paths


async def test_what_was_given_for_a_former_address_is_given_again(mocker: MockerFixture) -> None:
    desk = Desk(mocker)
    await desk.give({"token": PLANTED, "user": "ann"})
    moved = replace(desk.server, config=replace(desk.server.config, url="https://evil.example/mcp"))
    desk.state.servers[moved.id] = moved
    with refused("account_secrets_invalid"):
        await desk.give({"user": "ann"})


async def test_an_address_that_the_caller_was_not_told_gets_nothing(mocker: MockerFixture) -> None:
    desk = Desk(mocker)
    with refused("mcp_server_changed"):
        await desk.give({"token": PLANTED, "user": "ann"}, address="https://elsewhere.example/mcp")
    assert desk.secrets.given == {}
    await desk.give({"token": PLANTED, "user": "ann"}, address="https://tickets.example/mcp")


async def test_a_program_that_the_caller_was_not_told_gets_nothing(mocker: MockerFixture) -> None:
    desk = Desk(mocker, a_started_secrets_server())
    with refused("mcp_server_changed"):
        await desk.give({"token": PLANTED}, address="custom tickets-server --to=evil.example")
    await desk.give({"token": PLANTED}, address="custom tickets-server --stdio")
    edited = replace(desk.server, config=replace(desk.server.config, env={**desk.server.config.env, "HOST": "evil"}))
    desk.state.servers[edited.id] = edited
    with refused("account_secrets_invalid"):
        await desk.give({})


async def test_a_program_whose_variables_changed_since_the_caller_was_told_gets_nothing(mocker: MockerFixture) -> None:
    desk = Desk(mocker, a_started_secrets_server())
    offer = ListedAccount(server=desk.server, account=None, is_stored=True, link="").offer
    env = {**desk.server.config.env, "WIKI_URL": "https://evil.example"}
    edited = replace(desk.server, version=desk.server.version + 1, config=replace(desk.server.config, env=env))
    desk.state.servers[edited.id] = edited
    with refused("mcp_server_changed"):
        await desk.give({"token": PLANTED}, address="custom tickets-server --stdio", offer=offer)
    assert desk.secrets.given == {}
    await desk.give({"token": PLANTED}, offer=ListedAccount(server=edited, account=None, is_stored=True, link="").offer)
    for value in (PLANTED, "evil"):
        assert value not in offer


async def test_a_key_gives_none_and_other_servers_take_none(mocker: MockerFixture) -> None:
    with refused("person_required"):
        await Desk(mocker).give({"token": "t"}, by=a_principal(Role.ADMIN))
    with refused("mcp_server_auth_mismatch"):
        await Desk(mocker, a_person_server()).give({"token": "t"})
    with refused("mcp_server_not_found"):
        await Desk(mocker).give({"token": "t"}, by=a_person(organization_id=OTHER_ORG))


async def test_nothing_is_stored_for_a_person_who_was_deactivated_meanwhile(mocker: MockerFixture) -> None:
    desk = Desk(mocker)
    desk.state.users[USER] = replace(a_user(), status=UserStatus.DEACTIVATED)
    with refused("mcp_server_changed"):
        await desk.give({"token": PLANTED, "user": "ann"})
    assert (desk.secrets.given, desk.state.audit) == ({}, {})


async def test_secrets_are_audited_though_what_waits_could_not_continue(mocker: MockerFixture) -> None:
    desk = Desk(mocker)
    desk.accounts.continue_what_waits.side_effect = storage_away()
    with refused("storage_unavailable"):
        await desk.give({"token": PLANTED, "user": "ann"})
    assert [entry.action for entry in desk.state.audit.values()] == [AuditAction.ACCOUNT_CONNECTED]
