"""People: users with their roles and access, and the groups of the organization."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.groups.create_organization_group import CreateOrganizationGroup, CreateOrganizationGroupCommand
from application.groups.delete_organization_group import DeleteOrganizationGroup, DeleteOrganizationGroupCommand
from application.groups.queries import GetGroup, ListGroups
from application.groups.update_organization_group import UpdateOrganizationGroup, UpdateOrganizationGroupCommand
from application.identity.queries import GetOrganization, ListUsers
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.revocation.update_user import UpdateUser, UpdateUserCommand
from application.roles.queries import ListCustomRoles
from application.system.pages import PageRequest
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import UserStatus
from domain.identity.user_limits import UserLimits
from domain.ids import UserId
from domain.json_value import JsonObject, JsonValue
from interfaces.console.faults import entered_version
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.user_limits_form import limit_fields, limits_body, shown_limits
from interfaces.console_paths import PATH
from interfaces.http.bodies import decoded_body
from interfaces.http.groups.schemas import UpdateGroupBody
from interfaces.http.groups.views import group_view
from interfaces.http.organization.schemas import UserLimitsBody
from interfaces.http.organization.views import user_limits_view
from interfaces.http.roles.views import role_fields
from interfaces.http.users.schemas import UpdateUserBody
from interfaces.http.users.views import updated_user_view

PAGE = 100
GROUPS = "/people/groups"
_STATUSES = {"deactivated": UserStatus.DEACTIVATED, "active": UserStatus.ACTIVE, "removed": UserStatus.REMOVED}


class PeoplePages:
    """Data of the pages."""

    def __init__(
        self,
        *,
        list_users: ListUsers,
        get_organization: GetOrganization,
        list_groups: ListGroups,
        get_group: GetGroup,
        list_custom_roles: ListCustomRoles,
    ) -> None:
        self._users = list_users
        self._organization = get_organization
        self._groups = list_groups
        self._group = get_group
        self._roles = list_custom_roles

    async def users(self, principal: Principal, cursor: str = "", status: str = "") -> dict[str, object]:
        """Users, newest first. Raises FORBIDDEN."""
        wanted = PageRequest(limit=PAGE, cursor=cursor or None)
        page = await self._users.execute(principal, wanted, _STATUSES.get(status))
        roles = [*Role, *(role.name for role in await self._roles.execute(principal))]
        organization = await self._organization.execute(principal)
        return {
            "users": page.items,
            "cursor": cursor,
            "next_cursor": page.next_cursor,
            "status": status if status in _STATUSES else "",
            "own": principal,
            "roles": roles,
            "limits": {user.id: shown_limits(user_limits_view(organization.limits_of(user.id))) for user in page.items},
            "own_limits": {
                user.id: limit_fields(user_limits_view(organization.limits_of_users.get(user.id, UserLimits())))
                for user in page.items
            },
            "may_limit": principal.may(Permission.ORGANIZATION_MANAGE),
            "said": "",
        }

    async def everything(self, principal: Principal, cursor: str, status: str) -> dict[str, object]:
        may_group = principal.may(Permission.GROUPS_MANAGE)
        groups = await self._groups.execute(principal) if may_group else ()
        context = await self.users(principal, cursor, status)
        return {**context, "groups": [group_view(group) for group in groups], "may_group": may_group}

    async def group(self, principal: Principal, group: str, said: str = "") -> dict[str, object]:
        """The group, and the users whom a member can be chosen from. Raises FORBIDDEN,
        NOT_FOUND."""
        found = group_view(await self._group.execute(principal, group))
        users = await self._users.execute(principal, PageRequest(limit=PAGE))
        return {
            "group": found,
            "names": {user.id: user.name or user.email or user.subject for user in users.items},
            "claims": "\n".join(
                f"{each['identity_provider']}:{each['claim']}={each['value']}" for each in found["claims"]
            ),
            "said": said,
        }


@get("/people")
async def show_people(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    people_pages: NamedDependency[PeoplePages],
    cursor: FromQuery[str] = "",
    status: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "people.html", await people_pages.everything(request.principal, cursor, status))


@post("/people/{user_id:str}", status_code=200)
async def change_person(
    *,
    request: ConsoleRequest,
    user_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    people_pages: NamedDependency[PeoplePages],
    update_user: NamedDependency[UpdateUser],
    cursor: FromQuery[str] = "",
    status: FromQuery[str] = "",
) -> Response[str]:
    """Give a role, end and restore access, or let the user act as others."""
    form = FormValues(data)
    given_status = _STATUSES.get(form["status"])
    may_impersonate = {"yes": True, "no": False}.get(form["may_impersonate"])
    if not form["role"] and given_status is None and may_impersonate is None:
        raise invalid(
            "user_invalid", "Choose a role or a status.", Violation(path="role", message="or a status is needed")
        )
    body = decoded_body(UpdateUserBody, role_fields(form["role"]) if form["role"] else {})
    command = UpdateUserCommand(
        principal=request.principal,
        user_id=UserId(user_id),
        role=body.role,
        custom_role=body.custom_role,
        may_impersonate=may_impersonate,
        status=given_status,
    )
    changed = updated_user_view(await update_user.execute(command))
    context = {**await people_pages.users(request.principal, cursor, status), "said": changed}
    return pages.show(request, "parts/people_table.html", context)


@post("/people/{user_id:str}/limits", status_code=200)
async def limit_person(
    *,
    request: ConsoleRequest,
    user_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    people_pages: NamedDependency[PeoplePages],
    get_organization: NamedDependency[GetOrganization],
    update_organization: NamedDependency[UpdateOrganization],
    cursor: FromQuery[str] = "",
    status: FromQuery[str] = "",
) -> Response[str]:
    """Save the limits of one user; without any, those of all users apply."""
    principal, form = request.principal, FormValues(data)
    principal.require(Permission.ORGANIZATION_MANAGE)
    principal.require(Permission.USERS_MANAGE)  # for the list that the answer shows
    entered = limits_body(form)
    if form.wrong:
        raise invalid("form_invalid", "The form has invalid fields.", *form.wrong)
    limits = decoded_body(UserLimitsBody, entered).to_domain()
    organization = await get_organization.execute(principal)
    others = {name: each for name, each in organization.limits_of_users.items() if name != user_id}
    await update_organization.execute(
        UpdateOrganizationCommand(
            principal=principal,
            changes={"limits_of_users": others if limits == UserLimits() else {**others, user_id: limits}},
            expected_version=organization.version,
        )
    )
    return pages.show(request, "parts/people_table.html", await people_pages.users(principal, cursor, status))


@post(GROUPS, status_code=200)
async def add_group(
    request: ConsoleRequest, data: Form, create_organization_group: NamedDependency[CreateOrganizationGroup]
) -> Response[str]:
    """Create an empty group, and go to its page."""
    command = CreateOrganizationGroupCommand(principal=request.principal, name=FormValues(data)["name"].strip())
    group = await create_organization_group.execute(command)
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}{GROUPS}/{group.id}"})


@get(f"{GROUPS}/{{group:str}}")
async def show_group(
    request: ConsoleRequest,
    group: FromPath[str],
    pages: NamedDependency[Pages],
    people_pages: NamedDependency[PeoplePages],
) -> Response[str]:
    return pages.show(request, "group.html", await people_pages.group(request.principal, group))


@post(f"{GROUPS}/{{group:str}}", status_code=200)
async def save_group(
    *,
    request: ConsoleRequest,
    group: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    people_pages: NamedDependency[PeoplePages],
    update_organization_group: NamedDependency[UpdateOrganizationGroup],
) -> Response[str]:
    """Save name and claims, or add or remove a member."""
    form = FormValues(data)
    body = decoded_body(UpdateGroupBody, _group_body(form))
    await update_organization_group.execute(
        UpdateOrganizationGroupCommand(
            principal=request.principal,
            group=group,
            expected_version=entered_version(form["version"]) if form["version"] else None,
            **body.values(),
        )
    )
    return pages.show(request, "parts/group.html", await people_pages.group(request.principal, group, "Saved."))


@post(f"{GROUPS}/{{group:str}}/delete", status_code=200)
async def delete_group_page(
    request: ConsoleRequest,
    group: FromPath[str],
    delete_organization_group: NamedDependency[DeleteOrganizationGroup],
) -> Response[str]:
    await delete_organization_group.execute(DeleteOrganizationGroupCommand(principal=request.principal, group=group))
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/people"})


def _group_body(form: FormValues) -> JsonObject:
    """`add` and `remove` name one user; otherwise name and claims are saved. Claims are lines
    `PROVIDER:CLAIM=VALUE`."""
    if form["add"].strip() or form["remove"]:
        changes = {"add_members": form["add"].strip(), "remove_members": form["remove"]}
        return {name: [user] for name, user in changes.items() if user}
    claims: list[JsonValue] = []
    for line in form["claims"].splitlines():
        provider, colon, match = line.strip().partition(":")
        claim, equals, value = match.partition("=")
        if not line.strip():
            continue
        if not colon or not equals:
            wrong = Violation(path="claims", message="is a line PROVIDER:CLAIM=VALUE each")
            raise invalid("group_invalid", f"Not a claim: {line.strip()[:60]}", wrong)
        claims.append({"identity_provider": provider, "claim": claim, "value": value})
    return {"name": form["name"].strip(), "claims": claims}
