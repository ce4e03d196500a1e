"""Gauges of rates: what has one, and how far it is used."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.identity.queries import GetOrganization, ListApiKeys, ListUsers
from application.mcp.queries import ListMcpServers
from application.system.pages import Page
from application.system.rates import LocalRates
from domain.identity.role import Role
from domain.identity.user_limits import UserLimits
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from interfaces.console.rate_limits import RateGauge, RateLimits
from tests.builders import ORG, START, a_key, a_server, an_organization
from tests.doubles.surroundings import FixedClock
from tests.people_builders import USER, a_user
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")
EVERY = RateLimit(calls=100, per_s=60)
OWN = RateLimit(calls=10, per_s=1)


class Console:
    """An organization with a server, three keys and a user, and the rates of its process."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.rates = LocalRates(clock=FixedClock())
        organization = mocker.create_autospec(GetOrganization, instance=True)
        organization.execute.return_value = replace(
            an_organization(), limits_of_users={USER: UserLimits(rate_limit=OWN)}
        )
        servers = mocker.create_autospec(ListMcpServers, instance=True)
        server = a_server()
        self.server = replace(server, config=replace(server.config, rate_limit=OWN))
        servers.execute.return_value = Page(items=(self.server,))
        keys = mocker.create_autospec(ListApiKeys, instance=True)
        key = replace(a_key(), name="ci", rate_limit=OWN)
        gone = replace(key, id=ApiKeyId("key_gone"), revoked_at=START)
        idle = replace(key, id=ApiKeyId("key_idle"), name="idle", rate_limit=None)
        self.key = key
        keys.execute.return_value = Page(items=(idle, key, gone))
        users = mocker.create_autospec(ListUsers, instance=True)
        users.execute.return_value = Page(items=(a_user(),))
        self.limits = RateLimits(
            get_organization=organization,
            list_mcp_servers=servers,
            list_api_keys=keys,
            list_users=users,
            rates=self.rates,
            clock=FixedClock(),
            every_key=EVERY,
            every_organization=EVERY,
        )

    async def gauges(self, role: Role = Role.ADMIN) -> dict[str, list[tuple[str, int, int, str]]]:
        found = await self.limits.of(a_principal(role))
        return {name: [figures(each) for each in gauges] for name, gauges in found.items() if isinstance(gauges, list)}


def figures(gauge: RateGauge) -> tuple[str, int, int, str]:
    return gauge.name, gauge.used, gauge.percent, gauge.period


async def test_what_has_a_rate_is_shown_with_its_use_and_the_operators_rate_while_it_is_used(
    mocker: MockerFixture,
) -> None:
    console = Console(mocker)
    for bucket in ((console.server.id, OWN), (console.key.id, OWN), (console.key.id, EVERY), (ORG, EVERY)):
        for _ in range(5):
            console.rates.turn((bucket,))

    shown = await console.gauges()

    assert shown["rates"] == [("Calls of MCP servers", 5, 5, "a minute")]
    assert shown["rates_of_servers"] == [(console.server.config.slug, 5, 50, "a second")]
    assert shown["rates_of_keys"] == [("ci", 5, 50, "a second"), ("ci", 5, 5, "a minute")]
    assert shown["rates_of_users"] == [(USER, 0, 0, "a second")]


async def test_keys_and_users_are_shown_to_who_manages_them(mocker: MockerFixture) -> None:
    shown = await Console(mocker).gauges(Role.VIEWER)
    assert (shown["rates_of_keys"], shown["rates_of_users"]) == ([], [])
    assert len(shown["rates_of_servers"]) == 1
