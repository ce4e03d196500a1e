"""Users as JSON."""

from typing import Annotated, Literal, TypedDict

from application.identity.describe_caller import Caller
from application.revocation.stopped_work import UpdatedUser
from domain.identity.impersonation import Impersonation
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.threads.message_json import timestamp
from interfaces.http.roles.views import in_order
from interfaces.http.view_fields import CreatedAt, ExpiresAt, Items, NextCursor, Timestamp


class UserView(TypedDict):
    """A person who signed in."""

    id: Annotated[str, "Id of the user. Runs, calls, approvals and audit entries name it."]
    issuer: Annotated[str, "Issuer of the person's identity."]
    subject: Annotated[str, "The person at the issuer."]
    email: Annotated[str | None, "E-mail address, as the identity provider says."]
    name: Annotated[str | None, "Name, as the identity provider says."]
    role: Annotated[Role, "What the user may do; each role includes the roles before it."]
    custom_role: Annotated[str | None, "The custom role in place of `role`, which is `viewer` then; null: none."]
    role_fixed: Annotated[bool, "Whether an admin set the role. Otherwise rules set it at each sign-in."]
    may_impersonate: Annotated[bool, "Whether an admin lets the user act as other users."]
    status: Annotated[UserStatus, "Only active users are admitted."]
    identity_provider_id: Annotated[str, "The identity provider of the last sign-in."]
    created_at: CreatedAt
    last_sign_in_at: Annotated[
        Timestamp | None,
        "Time of the last sign-in. Who sends tokens: when one was first used here, at most about once an hour; null if never.",
    ]


class UpdatedUserView(UserView):
    """A changed user, and how many runs, workflow runs and gateway sessions end with their
    access."""

    cancelled_runs: Annotated[int, "Number of their runs that are cancelled."]
    cancelled_workflow_runs: Annotated[int, "Number of their workflow runs that are cancelled."]
    revoked_gateway_sessions: Annotated[int, "Number of their gateway sessions that are revoked."]


class ImpersonationView(TypedDict):
    """Who acts as a user, or did in the last 30 days."""

    id: Annotated[str, "Id of the impersonation."]
    actor: Annotated[str, "The user or platform key that acts."]
    user_id: Annotated[str, "The user as whom the actor acts."]
    acting: Annotated[str, "How runs, calls and audit entries name both."]
    reason: Annotated[str, "Why."]
    created_at: CreatedAt
    expires_at: ExpiresAt
    ended_at: Annotated[Timestamp | None, "When it was ended before it expired."]


class BegunImpersonationView(ImpersonationView):
    """A new impersonation with its token."""

    token: Annotated[str, "Bearer token: `dgi_…`. It is shown only once."]


class ImpersonationList(TypedDict):
    """Impersonations of a user, newest first."""

    data: Items[ImpersonationView]


def impersonation_view(impersonation: Impersonation) -> ImpersonationView:
    return {
        "id": impersonation.id,
        "actor": impersonation.actor,
        "user_id": impersonation.user_id,
        "acting": impersonation.acting,
        "reason": impersonation.reason,
        "created_at": timestamp(impersonation.created_at),
        "expires_at": timestamp(impersonation.expires_at),
        "ended_at": None if impersonation.ended_at is None else timestamp(impersonation.ended_at),
    }


class UserPage(TypedDict):
    """A page of users; `next_cursor` is null on the last one."""

    data: Items[UserView]
    next_cursor: NextCursor


class CallerView(TypedDict):
    """Who sent this request."""

    id: Annotated[str, "Id of the user or the API key. Runs, calls, approvals and audit entries name it."]
    kind: Annotated[Literal["user", "api_key"], "Whether a person or an API key sent the request."]
    name: Annotated[str | None, "Name of the person or the API key."]
    email: Annotated[str | None, "E-mail address of the person; null for API keys."]
    role: Annotated[Role, "What the caller may do; each role includes the roles before it."]
    custom_role: Annotated[str | None, "The custom role in place of `role`; null: none."]
    permissions: Annotated[list[Permission], "What the caller may do, besides reading."]
    platform: Annotated[bool, "Whether the caller may manage organizations."]
    organization_id: Annotated[str, "Id of the caller's organization."]
    organization_name: Annotated[str, "Name of the caller's organization."]
    issuer: Annotated[str | None, "Where the person signed in; null for API keys."]
    expires_at: Annotated[Timestamp | None, "When the token or the API key expires; null: never."]


def caller_view(caller: Caller) -> CallerView:
    user = caller.user
    return {
        "id": caller.id,
        "kind": "api_key" if user is None else "user",
        "name": caller.name,
        "email": None if user is None else user.email,
        "role": caller.role,
        "custom_role": caller.custom_role,
        "permissions": in_order(caller.permissions),
        "platform": caller.platform,
        "organization_id": caller.organization.id,
        "organization_name": caller.organization.name,
        "issuer": None if user is None else user.issuer,
        "expires_at": None if caller.expires_at is None else timestamp(caller.expires_at),
    }


def user_view(user: User) -> UserView:
    return {
        "id": user.id,
        "issuer": user.issuer,
        "subject": user.subject,
        "email": user.email,
        "name": user.name,
        "role": user.role,
        "custom_role": user.custom_role,
        "role_fixed": user.role_fixed,
        "may_impersonate": user.may_impersonate,
        "status": user.status,
        "identity_provider_id": user.provider_id,
        "created_at": timestamp(user.created_at),
        "last_sign_in_at": None if user.last_sign_in_at is None else timestamp(user.last_sign_in_at),
    }


def updated_user_view(updated: UpdatedUser) -> UpdatedUserView:
    return {
        **user_view(updated.user),
        "cancelled_runs": updated.stopped.runs,
        "cancelled_workflow_runs": updated.stopped.workflow_runs,
        "revoked_gateway_sessions": updated.stopped.gateway_sessions,
    }
