"""Body of the user routes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from domain.identity.impersonation import DEFAULT_MINUTES, MAX_MINUTES, MAX_REASON
from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name


class UpdateUserBody(Body):
    """Changes to a user; absent fields stay. A role that is set here stays at later sign-ins."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"status": "deactivated"},)

    role: Annotated[Role, Field(strict=False)] | None = Field(default=None, description="The new role.")
    custom_role: Name | None = Field(default=None, description="The new custom role, in place of `role`.")
    may_impersonate: bool | None = Field(
        default=None, description="Whether the user may act as other users of the organization, for support."
    )
    status: Literal["active", "deactivated"] | None = Field(
        default=None, description="A deactivated user is refused at once, and what they started ends."
    )


class BeginImpersonationBody(Body):
    """Why and how long the caller acts as a user."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"reason": "Ticket 4711: the inbox is empty", "minutes": 15},)

    reason: str = Field(
        min_length=1, max_length=MAX_REASON, description="Why. The user reads it, and the audit trail has it."
    )
    minutes: int = Field(
        default=DEFAULT_MINUTES, ge=1, le=MAX_MINUTES, description="After this time the token is refused."
    )
