"""Routes of all organizations, for platform keys."""

from litestar import Response, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.identity.create_organization import CreateOrganization, CreateOrganizationCommand
from application.identity.create_organization_key import CreateOrganizationKey, CreateOrganizationKeyCommand
from application.identity.queries import GetOrganization, ListOrganizations
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.tools.review_tool_policies import ReviewToolPolicies, ReviewToolPoliciesCommand
from domain.ids import OrganizationId
from interfaces.http.api_keys.views import CreatedApiKeyView, created_api_key_view
from interfaces.http.organization.schemas import CreateOrganizationBody, OrganizationKeyBody, UpdateOrganizationBody
from interfaces.http.organization.views import (
    CreatedOrganizationView,
    OrganizationPage,
    OrganizationView,
    SavedOrganizationView,
    created_organization_view,
    organization_view,
)
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import OrganizationPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Organizations", description="All organizations, for platform keys.")


@post("/organizations", summary="Create an organization", responses=documented(403, 413))
async def create_organization(
    request: ApiRequest,
    data: JSONBody[CreateOrganizationBody],
    create_organization: NamedDependency[CreateOrganization],
) -> CreatedOrganizationView:
    """Requires a platform key. The token of its first admin key is shown only in this response."""
    settings = data.to_changes()
    command = CreateOrganizationCommand(
        principal=request.principal, name=data.name, settings=settings, limits=data.to_limits()
    )
    return created_organization_view(await create_organization.execute(command))


@get("/organizations", summary="List organizations", responses=documented(403))
async def list_organizations(
    *,
    request: ApiRequest,
    list_organizations: NamedDependency[ListOrganizations],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> OrganizationPage:
    """Requires a platform key. Newest first."""
    return page_view(
        await list_organizations.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        organization_view,
    )


@get(
    "/organizations/{organization_id:str}",
    summary="Read any organization's settings",
    responses=documented(403, 404),
)
async def get_any_organization(
    request: ApiRequest, organization_id: OrganizationPath, get_organization: NamedDependency[GetOrganization]
) -> Response[OrganizationView]:
    """Requires a platform key."""
    found = await get_organization.execute(principal=request.principal, organization_id=OrganizationId(organization_id))
    return Response(organization_view(found), headers=etag(found.version))


@patch(
    "/organizations/{organization_id:str}",
    summary="Change any organization's settings",
    responses=documented(403, 404, 412, 413),
)
async def update_any_organization(
    *,
    request: ApiRequest,
    organization_id: OrganizationPath,
    data: JSONBody[UpdateOrganizationBody],
    update_organization: NamedDependency[UpdateOrganization],
    review_tool_policies: NamedDependency[ReviewToolPolicies],
    if_match: IfMatch = None,
) -> Response[SavedOrganizationView]:
    """Requires a platform key. Changes apply at once, also to runs in progress."""
    changed = await update_organization.execute(
        UpdateOrganizationCommand(
            principal=request.principal,
            organization_id=OrganizationId(organization_id),
            changes=data.to_changes(),
            limits=data.to_limit_changes(),
            expected_version=expected_version(if_match),
        )
    )
    command = ReviewToolPoliciesCommand(principal=request.principal, saved=changed)
    warnings = await review_tool_policies.execute(command)
    return Response({**organization_view(changed), "warnings": list(warnings)}, headers=etag(changed.version))


@post(
    "/organizations/{organization_id:str}/api-keys",
    summary="Create an admin key for any organization",
    responses=documented(403, 404, 413),
)
async def create_organization_key(
    request: ApiRequest,
    organization_id: OrganizationPath,
    data: JSONBody[OrganizationKeyBody],
    create_organization_key: NamedDependency[CreateOrganizationKey],
) -> CreatedApiKeyView:
    """Requires a platform key. For an organization that has lost its admin keys. The token is
    shown only in this response."""
    command = CreateOrganizationKeyCommand(
        principal=request.principal, organization_id=OrganizationId(organization_id), name=data.name
    )
    return created_api_key_view(await create_organization_key.execute(command))
