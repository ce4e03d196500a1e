"""Body of the user routes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name


class UpdateUserBody(Body):
    """Changes to a user; absent fields stay. A role that is set here stays at later sign-ins."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"status": "deactivated"},)

    role: Annotated[Role, Field(strict=False)] | None = Field(default=None, description="The new role.")
    custom_role: Name | None = Field(default=None, description="The new custom role, in place of `role`.")
    status: Literal["active", "deactivated"] | None = Field(
        default=None, description="A deactivated user is refused at once, and what they started ends."
    )
