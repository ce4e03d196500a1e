"""A directory of tests: its stores, its use cases' ports, and a person whom it describes."""

from pytest_mock import MockerFixture, MockType

from application.identity.assignable_roles import AssignableRoles
from application.identity.token_cache import TokenCache
from application.provisioning.access import DirectoryAccess
from application.provisioning.provision_user import ProvisionUser, ProvisionUserCommand
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.update_user import NOTHING_STOPPED, UpdateUser
from domain.audit.event import AuditAction
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.user import User
from domain.ids import UserId
from tests.builders import OTHER_ORG, numbered
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.groups import InMemoryGroupStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.provisioning import InMemoryProvisioningStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import PROVIDER, a_provider, a_user

ANN = DirectoryEntry(user_name="ann@example.com", external_id="ann", name="Ann", email="ann@example.com")
ABROAD = UserId(numbered("usr", 90))


class Directory:
    """The directory of `a_provider`, and what its changes end."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.provider = a_provider()
        self.state.identity_providers[PROVIDER] = self.provider
        self.provisioned = InMemoryProvisioningStore(self.state)
        self.groups = InMemoryGroupStore(self.state)
        self.clock, self.ids = FixedClock(), SequentialIds()
        self.work: MockType = mocker.create_autospec(StopWorkOfKey, instance=True)
        self.work.execute.return_value = NOTHING_STOPPED
        update_user = UpdateUser(
            users=InMemoryUserStore(self.state),
            assignable=AssignableRoles(custom_roles=InMemoryCustomRoleStore(self.state)),
            memberships=InMemoryOrganizationGroupStore(self.state),
            cache=mocker.create_autospec(TokenCache, instance=True),
            work=self.work,
            clock=self.clock,
            ids=self.ids,
        )
        self.access = DirectoryAccess(update_user=update_user, access=self.provisioned)

    async def add(self, entry: DirectoryEntry = ANN, *, active: bool = True) -> ProvisionedUser:
        adding = ProvisionUser(
            provisioned=self.provisioned, directory_access=self.access, clock=self.clock, ids=self.ids
        )
        return await adding.execute(ProvisionUserCommand(provider=self.provider, entry=entry, active=active))

    def put_abroad(self) -> None:
        """Ann also has a user in another organization, into which a rule of the identity provider
        lets her."""
        self.state.users[ABROAD] = a_user(ABROAD, organization_id=OTHER_ORG)

    def user(self, user_id: UserId) -> User:
        return self.state.users[user_id]

    @property
    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]
