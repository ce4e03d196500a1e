"""Routes of the caller's organization."""

from litestar import Response, get, patch
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.identity.queries import GetOrganization
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.tools.review_tool_policies import ReviewToolPolicies, ReviewToolPoliciesCommand
from interfaces.http.organization.schemas import UpdateOrganizationBody
from interfaces.http.organization.views import OrganizationView, SavedOrganizationView, organization_view
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Organization", description="The settings of the key's organization.")


@get("/organization", summary="Read the organization's settings", responses=documented())
async def get_organization(
    request: ApiRequest, get_organization: NamedDependency[GetOrganization]
) -> Response[OrganizationView]:
    """The organization of the key."""
    found = await get_organization.execute(principal=request.principal)
    return Response(organization_view(found), headers=etag(found.version))


@patch("/organization", summary="Change the organization's settings", responses=documented(403, 412, 413))
async def update_organization(
    request: ApiRequest,
    data: JSONBody[UpdateOrganizationBody],
    update_organization: NamedDependency[UpdateOrganization],
    review_tool_policies: NamedDependency[ReviewToolPolicies],
    if_match: IfMatch = None,
) -> Response[SavedOrganizationView]:
    """Requires the role admin. Changes apply at once, also to runs in progress."""
    changed = await update_organization.execute(
        UpdateOrganizationCommand(
            principal=request.principal,
            changes=data.to_changes(),
            limits=data.to_limit_changes(),
            expected_version=expected_version(if_match),
        )
    )
    command = ReviewToolPoliciesCommand(principal=request.principal, saved=changed)
    warnings = await review_tool_policies.execute(command)
    return Response({**organization_view(changed), "warnings": list(warnings)}, headers=etag(changed.version))
