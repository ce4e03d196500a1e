"""Groups as JSON."""

from typing import Annotated, TypedDict

from application.groups.queries import AnyGroup
from domain.identity.organization_group import GroupClaim
from domain.identity.provisioning import Group
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, Items, UpdatedAt, Version


class GroupClaimView(TypedDict):
    """Makes people with this value in a claim members when they sign in."""

    identity_provider: Annotated[str, "The identity provider with which they sign in."]
    claim: Annotated[str, "Name of the claim, or a path with dots to a claim inside others."]
    value: Annotated[str, "Value of the claim, or one of its items; `*` matches every value."]


class GroupView(TypedDict):
    """A group of users."""

    id: Annotated[str, "Id of the group."]
    name: Annotated[str, "Name of the group. Policies name groups by it."]
    identity_provider_id: Annotated[
        str | None,
        "The identity provider whose directory manages the group; rules find its name in the claim `scim_groups`."
        " Null: the organization manages it.",
    ]
    members: Annotated[list[str], "Ids of the users whom the directory or an admin made members."]
    members_by_claim: Annotated[list[str], "Ids of the users who are members by a claim of their last sign-in."]
    claims: Annotated[list[GroupClaimView], "Claims that make people members."]
    version: Version
    created_at: CreatedAt
    updated_at: UpdatedAt


class GroupList(TypedDict):
    """All groups of the organization."""

    data: Items[GroupView]


def group_view(group: AnyGroup) -> GroupView:
    return {
        "id": group.id,
        "name": group.name,
        "identity_provider_id": group.provider_id if isinstance(group, Group) else None,
        "members": [*group.members],
        "members_by_claim": [] if isinstance(group, Group) else [*group.members_by_claim],
        "claims": [] if isinstance(group, Group) else [_claim_view(claim) for claim in group.claims],
        "version": group.version,
        "created_at": timestamp(group.created_at),
        "updated_at": timestamp(group.changed_at),
    }


def _claim_view(claim: GroupClaim) -> GroupClaimView:
    return {"identity_provider": claim.provider_id, "claim": claim.claim, "value": claim.value}
