"""Builders of groups."""

from domain.identity.organization_group import OrganizationGroup
from domain.ids import GroupId
from tests.builders import ORG, START, numbered


def a_group(name: str, number: int = 1) -> OrganizationGroup:
    """A group of the organization without members."""
    id = GroupId(numbered("grp", number))
    return OrganizationGroup(id=id, organization_id=ORG, name=name, created_at=START, changed_at=START)
