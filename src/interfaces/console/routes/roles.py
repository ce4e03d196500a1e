"""Roles: custom ones with their permissions, and the built-in ones."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from application.roles.create_custom_role import CreateCustomRole, CreateCustomRoleCommand
from application.roles.delete_custom_role import DeleteCustomRole, DeleteCustomRoleCommand
from application.roles.queries import ListCustomRoles
from application.roles.update_custom_role import UpdateCustomRole, UpdateCustomRoleCommand
from domain.identity.api_key import Principal
from domain.identity.permission import DESCRIPTIONS, Permission
from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.console.faults import entered_version
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.http.bodies import decoded_body
from interfaces.http.roles.schemas import RoleBody, UpdateRoleBody

ROLES = "/people/roles"
_PART = "parts/roles.html"


class RolePages:
    """Data of the page."""

    def __init__(self, *, list_custom_roles: ListCustomRoles) -> None:
        self._roles = list_custom_roles

    async def all(self, principal: Principal, said: str = "") -> dict[str, object]:
        return {
            "roles": await self._roles.execute(principal),
            "built_in": list(Role),
            "permissions": DESCRIPTIONS,
            "own": principal,
            "may_change": principal.may(Permission.ROLES_MANAGE),
            "said": said,
        }


@get(ROLES)
async def show_roles(
    request: ConsoleRequest, pages: NamedDependency[Pages], role_pages: NamedDependency[RolePages]
) -> Response[str]:
    return pages.show(request, "roles.html", await role_pages.all(request.principal))


@post(ROLES, status_code=200)
async def add_role(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    role_pages: NamedDependency[RolePages],
    create_custom_role: NamedDependency[CreateCustomRole],
) -> Response[str]:
    form = FormValues(data)
    body = decoded_body(RoleBody, {"name": form["name"].strip(), **_entered(form)})
    created = await create_custom_role.execute(CreateCustomRoleCommand(principal=request.principal, **body.values()))
    return pages.show(request, _PART, await role_pages.all(request.principal, f"Created {created.name}."))


@post(f"{ROLES}/{{role:str}}", status_code=200)
async def save_role(
    *,
    request: ConsoleRequest,
    role: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    role_pages: NamedDependency[RolePages],
    update_custom_role: NamedDependency[UpdateCustomRole],
) -> Response[str]:
    """Permissions that the caller does not have are not in the form: a role that has one is
    refused."""
    form = FormValues(data)
    body = decoded_body(UpdateRoleBody, _entered(form))
    await update_custom_role.execute(
        UpdateCustomRoleCommand(
            principal=request.principal,
            name=role,
            expected_version=entered_version(form["version"]) if form["version"] else None,
            **body.values(),
        )
    )
    return pages.show(request, _PART, await role_pages.all(request.principal, f"Saved {role}."))


@post(f"{ROLES}/{{role:str}}/delete", status_code=200)
async def delete_role_page(
    *,
    request: ConsoleRequest,
    role: FromPath[str],
    pages: NamedDependency[Pages],
    role_pages: NamedDependency[RolePages],
    delete_custom_role: NamedDependency[DeleteCustomRole],
) -> Response[str]:
    await delete_custom_role.execute(DeleteCustomRoleCommand(principal=request.principal, name=role))
    return pages.show(request, _PART, await role_pages.all(request.principal, f"Deleted {role}."))


def _entered(form: FormValues) -> JsonObject:
    chosen = [permission.value for permission in Permission if form.has(f"permission.{permission.value}")]
    return {"description": form["description"].strip(), "permissions": [*chosen]}
