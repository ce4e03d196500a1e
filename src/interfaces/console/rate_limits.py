"""Gauges of rates: how many calls are used now of those that may be sent, of the organization, its
MCP servers, keys and users."""

from collections.abc import Iterable
from dataclasses import dataclass

from application.identity.queries import GetOrganization, ListApiKeys, ListUsers
from application.mcp.queries import ListMcpServers
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.system.rates import Bucket, RateUse
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.rate_limit import RateLimit
from interfaces.console.form_values import text
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH

_MINUTE_S, _HOUR_S = 60.0, 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGauge:
    """Calls that are used of `limit`, and come back in its time. `name` is an id where it is a
    user's."""

    name: str
    link: str
    used: int
    limit: RateLimit

    @property
    def percent(self) -> int:
        return min(100, round(100 * self.used / self.limit.calls))

    @property
    def period(self) -> str:
        return {1.0: "a second", _MINUTE_S: "a minute", _HOUR_S: "an hour"}.get(
            self.limit.per_s, f"in {text(self.limit.per_s)} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limited:
    """What has a bucket. `is_always`: shown also while it is unused."""

    id: str
    name: str
    link: str
    limit: RateLimit
    is_always: bool = True

    @property
    def bucket(self) -> Bucket:
        return self.id, self.limit


class RateLimits:
    """Rules:
    - MCP servers, keys and users that have a rate are always shown; those with the operator's
      alone, while they use it.
    - Keys are shown to who may see them, users to who manages them; everybody sees the own user.
    - What a process leased ahead counts as used.
    """

    def __init__(
        self,
        *,
        get_organization: GetOrganization,
        list_mcp_servers: ListMcpServers,
        list_api_keys: ListApiKeys,
        list_users: ListUsers,
        rates: RateUse,
        clock: Clock,
        every_key: RateLimit | None,
        every_organization: RateLimit | None,
    ) -> None:
        self._get_organization = get_organization
        self._list_servers = list_mcp_servers
        self._list_keys = list_api_keys
        self._list_users = list_users
        self._rates = rates
        self._clock = clock
        self._every_key = every_key
        self._every_organization = every_organization

    async def of(self, principal: Principal) -> dict[str, object]:
        """The fullest of each kind first."""
        organization = await self._get_organization.execute(principal)
        return {
            "rates": await self._gauges(self._of_organization(organization)),
            "rates_of_servers": await self._gauges(await self._of_servers(principal)),
            "rates_of_keys": await self._gauges(await self._of_keys(principal)),
            "rates_of_users": await self._gauges(await self._of_users(principal, organization)),
        }

    def _of_organization(self, organization: Organization) -> list[_Limited]:
        every = self._every_organization
        if every is None:
            return []
        name = "Calls of MCP servers"
        return [_Limited(id=organization.id, name=name, link=f"{PATH}/servers", limit=every)]

    async def _of_servers(self, principal: Principal) -> list[_Limited]:
        servers = await all_of(lambda page: self._list_servers.execute(principal=principal, page=page))
        return [
            _Limited(id=each.id, name=each.config.slug, link=f"{PATH}/servers/{each.config.slug}", limit=limit)
            for each in servers
            if (limit := each.config.rate_limit) is not None
        ]

    async def _of_keys(self, principal: Principal) -> list[_Limited]:
        if not principal.may(Permission.KEYS_MANAGE):
            return []
        now = self._clock.now()
        keys = await all_of(lambda page: self._list_keys.execute(principal=principal, page=page))
        return [
            limited
            for key in keys
            if key.revoked_at is None and (key.expires_at is None or key.expires_at > now)
            for limited in self._of_caller(key.id, key.name, f"{PATH}/keys", key.rate_limit)
        ]

    async def _of_users(self, principal: Principal, organization: Organization) -> list[_Limited]:
        """The newest users."""
        users = {} if principal.person_id is None else {principal.person_id: None}
        if principal.may(Permission.USERS_MANAGE):
            page = await self._list_users.execute(principal, PageRequest(limit=MAX_PAGE_SIZE))
            users |= {each.id: None for each in page.items}
        link = f"{PATH}/people" if principal.may(Permission.USERS_MANAGE) else f"{PATH}/usage"
        return [
            limited
            for user in users
            for limited in self._of_caller(user, user, link, organization.limits_of(user).rate_limit)
        ]

    def _of_caller(self, id: str, name: str, link: str, own: RateLimit | None) -> list[_Limited]:
        """A caller has the operator's rate, too."""
        every = self._every_key
        found = [] if own is None else [_Limited(id=id, name=name, link=link, limit=own)]
        if every is not None and every != own:
            found.append(_Limited(id=id, name=name, link=link, limit=every, is_always=False))
        return found

    async def _gauges(self, limited: Iterable[_Limited]) -> list[RateGauge]:
        each_of = tuple(limited)
        used = await self._rates.used([each.bucket for each in each_of])
        gauges = [
            RateGauge(name=each.name, link=each.link, used=count, limit=each.limit)
            for each, count in zip(each_of, used, strict=True)
            if count or each.is_always
        ]
        return sorted(gauges, key=lambda each: (-each.percent, each.name))
