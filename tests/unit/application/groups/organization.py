"""An organization of tests with two users, its groups and their use cases."""

from application.groups.create_organization_group import CreateOrganizationGroup, CreateOrganizationGroupCommand
from application.groups.group_checks import GroupChecks
from domain.audit.event import AuditAction
from domain.identity.organization_group import GroupClaim, OrganizationGroup
from domain.identity.provisioning import Group
from domain.ids import GroupId, UserId
from tests.builders import ORG, OTHER_ORG, START, numbered
from tests.doubles.groups import InMemoryGroupStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, USER, a_provider, a_user
from tests.unit.application.actors import a_principal

BOB = UserId(numbered("usr", 2))
STRANGER = UserId(numbered("usr", 3))
OF_DIRECTORY = GroupId(numbered("grp", 90))
CLAIM = GroupClaim(provider_id=PROVIDER, claim="groups", value="support")


class Organization:
    """ORG with Ann (USER) and Bob, a stranger elsewhere, and one group of a directory."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.identity_providers[PROVIDER] = a_provider()
        for user in (a_user(), a_user(BOB, subject="bob"), a_user(STRANGER, organization_id=OTHER_ORG)):
            self.state.users[user.id] = user
        self.state.groups[OF_DIRECTORY] = Group(
            id=OF_DIRECTORY,
            organization_id=ORG,
            provider_id=PROVIDER,
            name="Everybody",
            members=(USER,),
            created_at=START,
            changed_at=START,
        )
        self.groups = InMemoryOrganizationGroupStore(self.state)
        self.of_directories = InMemoryGroupStore(self.state)
        self.clock, self.ids = FixedClock(), SequentialIds()
        self.checks = GroupChecks(
            organization_groups=self.groups,
            groups=self.of_directories,
            identity_providers=InMemoryIdentityProviderStore(self.state),
        )
        self.creating = CreateOrganizationGroup(
            organization_groups=self.groups, checks=self.checks, clock=self.clock, ids=self.ids
        )

    async def create(
        self, name: str = "Support", *members: UserId, claim: GroupClaim | None = None
    ) -> OrganizationGroup:
        claims = () if claim is None else (claim,)
        command = CreateOrganizationGroupCommand(principal=a_principal(), name=name, members=members, claims=claims)
        return await self.creating.execute(command)

    @property
    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]
