"""The frame of all pages: the organization, who is signed in, and what waits for people."""

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from application.identity.ports import IdentityStore, UserStore
from application.identity.queries import GetOrganization, ListImpersonations
from application.system.ports import Clock
from domain.identity.api_key import Principal
from domain.identity.impersonation import Impersonation, acting_as
from domain.ids import UserId
from interfaces.console.inbox import Inbox
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.run_starters import RunStarters


class Frame:
    """Names and figures beside every page."""

    def __init__(
        self,
        *,
        get_organization: GetOrganization,
        identities: IdentityStore,
        users: UserStore,
        inbox: Inbox,
        run_starters: RunStarters,
        list_impersonations: ListImpersonations,
        clock: Clock,
    ) -> None:
        self._get_organization = get_organization
        self._identities = identities
        self._users = users
        self._inbox = inbox
        self._run_starters = run_starters
        self._impersonations = list_impersonations
        self._clock = clock

    async def of(self, principal: Principal, *, recent: bool) -> dict[str, object]:
        """By their names in the template. With `recent`, what waits may have been counted some
        seconds ago."""
        organization = await self._get_organization.execute(principal)
        waiting = await self._inbox.waiting(principal, recent=recent)
        acting = await self._acting_as(principal)
        return {
            "acting_as_caller": acting,
            "actors": await self._run_starters.names(principal, (each.actor for each in acting)),
            "organization": organization.name,
            "key": await self._name_of(principal) or principal.key_id,
            "waiting": str(waiting.count or ""),
            "newest": "" if waiting.newest is None else waiting.newest.isoformat(),
        }

    async def _acting_as(self, principal: Principal) -> list[Impersonation]:
        """Who acts as the caller now."""
        if principal.person_id is None:
            return []
        found = await self._impersonations.execute(principal, principal.person_id)
        return [each for each in found if each.is_open(self._clock.now())]

    async def _name_of(self, principal: Principal) -> str | None:
        """The name of the key or of the user."""
        if principal.user_until is None:
            key = await self._identities.key(principal.organization_id, principal.key_id)
            return None if key is None else key.name
        user = await self._users.get(principal.organization_id, acting_as(principal.key_id) or UserId(principal.key_id))
        return None if user is None else user.name or user.email


@get("/parts/frame")
async def show_frame(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    frame: NamedDependency[Frame],
    recent: FromQuery[bool] = False,
) -> Response[str]:
    """Open pages ask every few seconds for a `recent` one."""
    return pages.show(request, "parts/frame.html", await frame.of(request.principal, recent=recent))
