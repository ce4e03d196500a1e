"""Groups that an organization manages itself: members by hand, and members by claims at sign-in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.errors import ServiceError, Violation, conflict, invalid
from domain.identity.identity_provider import MAX_TEXT, claim_has
from domain.identity.provisioning import MAX_MEMBERS
from domain.ids import GroupId, IdentityProviderId, OrganizationId, UserId
from domain.json_value import JsonValue

MAX_GROUPS = 500
"""Per organization: a sign-in reads the claims of all of them."""
MAX_GROUP_NAME = 200
MAX_CLAIMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClaim:
    """Makes people with this value in a claim members, when they sign in with this identity
    provider.

    `claim` and `value` are as in rules of identity providers (`RoleRule`).
    """

    provider_id: IdentityProviderId
    claim: str
    value: str

    def matches(self, provider_id: IdentityProviderId, claims: Mapping[str, JsonValue]) -> bool:
        # Another identity provider may say the same of anybody.
        return provider_id == self.provider_id and claim_has(claims, self.claim, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationGroup:
    """A group of users of one organization.

    - `members` were added by hand. `members_by_claim` matched one of `claims` at their last
      sign-in.
    """

    id: GroupId
    organization_id: OrganizationId
    name: str
    members: tuple[UserId, ...] = ()
    members_by_claim: tuple[UserId, ...] = ()
    claims: tuple[GroupClaim, ...] = ()
    version: int = 1
    created_at: datetime
    changed_at: datetime

    def __post_init__(self) -> None:
        wrong = []
        if not _is_line(self.name, MAX_GROUP_NAME):
            wrong.append(Violation(path="name", message=f"must be 1 to {MAX_GROUP_NAME} printable characters"))
        if len(self.members) > MAX_MEMBERS:
            wrong.append(Violation(path="members", message=f"has more than {MAX_MEMBERS:,} users"))
        if len(self.claims) > MAX_CLAIMS:
            wrong.append(Violation(path="claims", message=f"has more than {MAX_CLAIMS} claims"))
        wrong += [
            Violation(path=f"claims.{index}", message="must name a claim and a value")
            for index, each in enumerate(self.claims[:MAX_CLAIMS])
            if not _is_line(each.claim, MAX_TEXT) or not _is_line(each.value, MAX_TEXT)
        ]
        if wrong:
            raise invalid("group_invalid", "The group is not valid.", *wrong)

    def claimed_by(self, provider_id: IdentityProviderId, claims: Mapping[str, JsonValue]) -> bool:
        """Whether a person with these claims is a member."""
        return any(each.matches(provider_id, claims) for each in self.claims)


def group_owns(name: str, owned: Mapping[str, Sequence[str]], *, named: bool) -> ServiceError:
    """`owned`: the first names of what belongs to the group, by kind. They are `named` to who sees
    them."""
    said = "; ".join(f"{kind}: {', '.join(names)}" if named else kind for kind, names in owned.items() if names)
    return conflict("group_owns", f"What belongs to the group {name!r} must be given to another one first. {said}.")


def team_gone(name: str) -> ServiceError:
    """For what was being given to the group."""
    return conflict("team_gone", f"The group {name!r} was deleted or renamed meanwhile.")


def group_name_taken() -> ServiceError:
    return conflict("group_name_taken", "The organization has another group of this name.")


def name_of_owner() -> ServiceError:
    """For a group of a directory: its members would see what the other group owns."""
    return conflict("group_name_taken", "Another group of this name owns agents, MCP servers or threads.")


def _is_line(text: str, most: int) -> bool:
    return 0 < len(text) <= most and text.isprintable() and text == text.strip()
