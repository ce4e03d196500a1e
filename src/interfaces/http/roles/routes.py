"""Routes of roles."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.roles.create_custom_role import CreateCustomRole, CreateCustomRoleCommand
from application.roles.delete_custom_role import DeleteCustomRole, DeleteCustomRoleCommand
from application.roles.queries import GetCustomRole, ListCustomRoles
from application.roles.update_custom_role import UpdateCustomRole, UpdateCustomRoleCommand
from interfaces.http.paths import RolePath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.roles.schemas import RoleBody, UpdateRoleBody
from interfaces.http.roles.views import RoleList, RoleView, role_list, role_view

TAG = Tag(name="Roles", description="What keys and users may do.")


@post("/roles", summary="Create a custom role", responses=documented(403, 409, 413))
async def create_role(
    request: ApiRequest, data: JSONBody[RoleBody], create_custom_role: NamedDependency[CreateCustomRole]
) -> Response[RoleView]:
    """Requires the permission `roles.manage`, and each permission of the role."""
    role = await create_custom_role.execute(CreateCustomRoleCommand(principal=request.principal, **data.values()))
    return Response(role_view(role), status_code=201, headers=etag(role.version))


@get("/roles", summary="List roles and permissions", responses=documented())
async def list_roles(request: ApiRequest, list_custom_roles: NamedDependency[ListCustomRoles]) -> RoleList:
    """Any role. Custom roles by name, the built-in roles, and all permissions."""
    return role_list(await list_custom_roles.execute(request.principal))


@get("/roles/{role:str}", summary="Read a custom role", responses=documented(404))
async def get_role(
    request: ApiRequest, role: RolePath, get_custom_role: NamedDependency[GetCustomRole]
) -> Response[RoleView]:
    """Any role."""
    found = await get_custom_role.execute(request.principal, role)
    return Response(role_view(found), headers=etag(found.version))


@patch("/roles/{role:str}", summary="Change a custom role", responses=documented(403, 404, 412, 413))
async def update_role(
    request: ApiRequest,
    role: RolePath,
    data: JSONBody[UpdateRoleBody],
    update_custom_role: NamedDependency[UpdateCustomRole],
    if_match: IfMatch = None,
) -> Response[RoleView]:
    """Requires the permission `roles.manage`, and each permission that the role has before or
    after. Applies at once to all who have the role. The name stays."""
    data.changes()  # refuses null
    changed = await update_custom_role.execute(
        UpdateCustomRoleCommand(
            principal=request.principal, name=role, expected_version=expected_version(if_match), **data.values()
        )
    )
    return Response(role_view(changed), headers=etag(changed.version))


@delete("/roles/{role:str}", summary="Delete a custom role", responses=documented(403, 404, 409))
async def delete_role(
    request: ApiRequest, role: RolePath, delete_custom_role: NamedDependency[DeleteCustomRole]
) -> None:
    """Requires the permission `roles.manage`. A role in use is answered with 409 `role_in_use`,
    which names the keys, users and identity providers that have it."""
    await delete_custom_role.execute(DeleteCustomRoleCommand(principal=request.principal, name=role))
