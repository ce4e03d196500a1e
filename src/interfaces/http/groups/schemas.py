"""Bodies of the group routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity.identity_provider import MAX_TEXT
from domain.identity.organization_group import MAX_CLAIMS, GroupClaim
from domain.identity.provisioning import MAX_MEMBERS
from domain.ids import IdentityProviderId
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.groups.views import GroupClaimView, GroupView

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Users = Annotated[tuple[_Text, ...], Field(strict=False, max_length=MAX_MEMBERS)]


class GroupClaimBody(Body):
    """People with this value in a claim are members."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"identity_provider": "company", "claim": "groups", "value": "support"},
    )
    shown_as: ClassVar[type] = GroupClaimView

    identity_provider: Name = Field(description="Id or name of the identity provider with which they sign in.")
    claim: _Text
    value: _Text

    def to_domain(self) -> GroupClaim:
        return GroupClaim(provider_id=IdentityProviderId(self.identity_provider), claim=self.claim, value=self.value)


class GroupBody(Body):
    """A group that the organization manages."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {
            "name": "Support leads",
            "members": ["usr_0001"],
            "claims": [{"identity_provider": "company", "claim": "groups", "value": "support-leads"}],
        },
    )
    shown_as: ClassVar[type] = GroupView

    name: Name
    members: _Users = ()
    claims: Annotated[tuple[GroupClaimBody, ...], Field(strict=False, max_length=MAX_CLAIMS)] = ()


class UpdateGroupBody(Patch, of=GroupBody):
    """Changes to a group; absent fields stay. `members` and `claims` replace all earlier ones; with
    other claims, members by claim are members again when they next sign in."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"add_members": ["usr_0002"], "remove_members": ["usr_0001"]},)

    add_members: _Users = Field(default=(), description="Ids of users who become members.")
    remove_members: _Users = Field(default=(), description="Ids of users who are no longer members by hand.")
