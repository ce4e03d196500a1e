"""Routes of users."""

from typing import Annotated

from litestar import delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.identity.begin_impersonation import BeginImpersonation, BeginImpersonationCommand
from application.identity.describe_caller import DescribeCaller
from application.identity.queries import GetUser, ListImpersonations, ListUsers
from application.revocation.update_user import UpdateUser, UpdateUserCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.identity.user import UserStatus
from domain.ids import UserId
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import UserPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.users.schemas import BeginImpersonationBody, UpdateUserBody
from interfaces.http.users.views import (
    BegunImpersonationView,
    CallerView,
    ImpersonationList,
    UpdatedUserView,
    UserPage,
    UserView,
    caller_view,
    impersonation_view,
    updated_user_view,
    user_view,
)

TAG = Tag(name="Users", description="People who signed in.")


@get("/whoami", summary="Read who the caller is", responses=documented())
async def whoami(request: ApiRequest, describe_caller: NamedDependency[DescribeCaller]) -> CallerView:
    """Any role. The person or the API key of this request, with its organization and role."""
    return caller_view(await describe_caller.execute(request.principal))


@get("/users", summary="List users", responses=documented(403))
async def list_users(
    *,
    request: ApiRequest,
    list_users: NamedDependency[ListUsers],
    status: Annotated[
        UserStatus | None, QueryParameter(description="Only users with this status; absent: those not removed.")
    ] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> UserPage:
    """Requires the role admin. Newest first."""
    page = await list_users.execute(request.principal, PageRequest(limit=limit, cursor=cursor), status)
    return page_view(page, user_view)


@get("/users/{user_id:str}", summary="Read a user", responses=documented(403, 404))
async def get_user(request: ApiRequest, user_id: UserPath, get_user: NamedDependency[GetUser]) -> UserView:
    """Requires the role admin; users read themselves with any role."""
    return user_view(await get_user.execute(request.principal, UserId(user_id)))


@patch("/users/{user_id:str}", summary="Change a user", responses=documented(403, 404, 409, 413))
async def update_user(
    request: ApiRequest, user_id: UserPath, data: JSONBody[UpdateUserBody], update_user: NamedDependency[UpdateUser]
) -> UpdatedUserView:
    """Requires the role admin. Applies at once. A deactivated user's unfinished runs and workflow
    runs are cancelled, and gateway sessions that they opened are revoked."""
    command = UpdateUserCommand(
        principal=request.principal,
        user_id=UserId(user_id),
        role=data.role,
        custom_role=data.custom_role,
        may_impersonate=data.may_impersonate,
        status=None if data.status is None else UserStatus(data.status),
    )
    return updated_user_view(await update_user.execute(command))


@delete("/users/{user_id:str}", status_code=200, summary="Remove a user", responses=documented(403, 404, 409))
async def remove_user(
    request: ApiRequest, user_id: UserPath, update_user: NamedDependency[UpdateUser]
) -> UpdatedUserView:
    """Requires the role admin. As deactivating; name and e-mail address are deleted too. The
    person's next sign-in is refused, until an admin sets the status to active."""
    command = UpdateUserCommand(principal=request.principal, user_id=UserId(user_id), status=UserStatus.REMOVED)
    return updated_user_view(await update_user.execute(command))


@post(
    "/users/{user_id:str}/impersonation", status_code=201, summary="Act as a user", responses=documented(403, 404, 413)
)
async def begin_impersonation(
    request: ApiRequest,
    user_id: UserPath,
    data: JSONBody[BeginImpersonationBody],
    begin_impersonation: NamedDependency[BeginImpersonation],
) -> BegunImpersonationView:
    """Requires a platform key, or a user with `may_impersonate`, whose role includes that of the
    user. The answer has a token for the API below `/v1`. The user sees it, and can end it
    (`DELETE /v1/sessions/{session_id}`)."""
    command = BeginImpersonationCommand(
        principal=request.principal, user_id=UserId(user_id), reason=data.reason, minutes=data.minutes
    )
    begun = await begin_impersonation.execute(command)
    return {**impersonation_view(begun.impersonation), "token": begun.token}


@get("/users/{user_id:str}/impersonation", summary="List who acted as a user", responses=documented(403))
async def list_impersonations(
    request: ApiRequest, user_id: UserPath, list_impersonations: NamedDependency[ListImpersonations]
) -> ImpersonationList:
    """Users read their own, others require the role admin. Those of the last 30 days, newest
    first."""
    found = await list_impersonations.execute(request.principal, UserId(user_id))
    return {"data": [impersonation_view(each) for each in found]}
