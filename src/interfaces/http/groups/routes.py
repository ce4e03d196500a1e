"""Routes of groups."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.groups.create_organization_group import CreateOrganizationGroup, CreateOrganizationGroupCommand
from application.groups.delete_organization_group import DeleteOrganizationGroup, DeleteOrganizationGroupCommand
from application.groups.queries import GetGroup, ListGroups
from application.groups.update_organization_group import UpdateOrganizationGroup, UpdateOrganizationGroupCommand
from interfaces.http.groups.schemas import GroupBody, UpdateGroupBody
from interfaces.http.groups.views import GroupList, GroupView, group_view
from interfaces.http.paths import GroupPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Groups", description="Groups of people, whom policies name.")


@post("/groups", summary="Create a group", responses=documented(403, 409, 413))
async def create_group(
    request: ApiRequest,
    data: JSONBody[GroupBody],
    create_organization_group: NamedDependency[CreateOrganizationGroup],
) -> Response[GroupView]:
    """Requires the role admin. People whose claims match become members at their next sign-in."""
    command = CreateOrganizationGroupCommand(principal=request.principal, **data.values())
    group = await create_organization_group.execute(command)
    return Response(group_view(group), status_code=201, headers=etag(group.version))


@get("/groups", summary="List groups", responses=documented(403))
async def list_groups(request: ApiRequest, list_groups: NamedDependency[ListGroups]) -> GroupList:
    """Requires the role admin. By name, with members: groups of the organization, and those that
    directories manage at `/scim/v2`."""
    return {"data": [group_view(group) for group in await list_groups.execute(request.principal)]}


@get("/groups/{group:str}", summary="Read a group", responses=documented(403, 404))
async def get_group(request: ApiRequest, group: GroupPath, get_group: NamedDependency[GetGroup]) -> Response[GroupView]:
    """Requires the role admin."""
    found = await get_group.execute(request.principal, group)
    return Response(group_view(found), headers=etag(found.version))


@patch("/groups/{group:str}", summary="Change a group", responses=documented(403, 404, 409, 412, 413))
async def update_group(
    request: ApiRequest,
    group: GroupPath,
    data: JSONBody[UpdateGroupBody],
    update_organization_group: NamedDependency[UpdateOrganizationGroup],
    if_match: IfMatch = None,
) -> Response[GroupView]:
    """Requires the role admin. Applies at once. A group of a directory is answered with 409
    `group_managed_by_directory`."""
    data.changes()  # refuses null
    changed = await update_organization_group.execute(
        UpdateOrganizationGroupCommand(
            principal=request.principal, group=group, expected_version=expected_version(if_match), **data.values()
        )
    )
    return Response(group_view(changed), headers=etag(changed.version))


@delete("/groups/{group:str}", summary="Delete a group", responses=documented(403, 404, 409))
async def delete_group(
    request: ApiRequest,
    group: GroupPath,
    delete_organization_group: NamedDependency[DeleteOrganizationGroup],
) -> None:
    """Requires the role admin. Its members stay users. A group of a directory is answered with 409
    `group_managed_by_directory`."""
    await delete_organization_group.execute(DeleteOrganizationGroupCommand(principal=request.principal, group=group))
