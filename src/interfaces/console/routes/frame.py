"""The frame of all pages: the organization, who is signed in, and what waits for people."""

from litestar import Response, get
from litestar.di import NamedDependency

from application.approvals.ports import ApprovalFilter
from application.approvals.queries import ListApprovals
from application.identity.ports import IdentityStore
from application.identity.queries import GetOrganization
from application.system.pages import PageRequest
from domain.approvals.approval import ApprovalState
from domain.identity.api_key import Principal
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest

COUNTED = 100
"""More that waits is not counted."""


class Frame:
    """Names and figures beside every page."""

    def __init__(
        self, *, get_organization: GetOrganization, identities: IdentityStore, list_approvals: ListApprovals
    ) -> None:
        self._get_organization = get_organization
        self._identities = identities
        self._list_approvals = list_approvals

    async def of(self, principal: Principal) -> dict[str, object]:
        """By their names in the template."""
        organization = await self._get_organization.execute(principal)
        key = await self._identities.key(principal.organization_id, principal.key_id)
        waiting = await self._list_approvals.execute(
            principal=principal,
            wanted=ApprovalFilter(state=ApprovalState.PENDING, run_id=None),
            page=PageRequest(limit=COUNTED),
        )
        return {
            "organization": organization.name,
            "key": principal.key_id if key is None else key.name,
            "approvals": f"{COUNTED}+" if waiting.next_cursor else str(len(waiting.items) or ""),
        }


@get("/parts/frame")
async def show_frame(
    request: ConsoleRequest, pages: NamedDependency[Pages], frame: NamedDependency[Frame]
) -> Response[str]:
    return pages.show(request, "parts/frame.html", await frame.of(request.principal))
