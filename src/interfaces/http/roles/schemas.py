"""Bodies of the role routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity.custom_role import MAX_DESCRIPTION
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.roles.views import RoleView


class RoleBody(Body):
    """A custom role."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"name": "approver", "description": "Decides approvals.", "permissions": ["approvals.decide"]},
    )
    shown_as: ClassVar[type] = RoleView

    name: Name
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""
    permissions: Annotated[
        tuple[Annotated[Permission, Field(strict=False)], ...], Field(strict=False, max_length=len(Permission))
    ]


class UpdateRoleBody(Patch, of=RoleBody, without={"name"}):
    """Changes to a custom role; absent fields stay. `permissions` replace all earlier ones. The
    name stays."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"permissions": ["approvals.decide", "runs.start"]},)
