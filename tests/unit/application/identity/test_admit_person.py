"""AdmitPerson: who is admitted, as what, and what is written."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_mock import MockerFixture

from application.identity.admit_person import AdmitPerson, AdmitPersonCommand
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import ANY_VALUE, IdentityProvider, RoleRule
from domain.identity.organization_group import GroupClaim, OrganizationGroup
from domain.identity.provisioning import DirectoryEntry, Group, ProvisionedUser
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import GroupId, IdentityProviderId, UserId
from domain.json_value import JsonObject
from tests.builders import ORG, OTHER_ORG, START, numbered
from tests.doubles.groups import InMemoryGroupStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.people_builders import AGENTS, PROVIDER, USER, a_provider, a_user
from tests.refusals import refused

ANN: JsonObject = {"sub": "ann", "email": "ann@example.com", "name": "Ann", "groups": ["agents", "others"]}


class Ports:
    def __init__(self) -> None:
        self.state = InMemoryState()
        self.clock = FixedClock()
        self.admit = AdmitPerson(
            user_access=InMemoryUserStore(self.state),
            group_names=InMemoryGroupStore(self.state),
            claimed_groups=InMemoryOrganizationGroupStore(self.state),
            clock=self.clock,
            ids=SequentialIds(),
        )

    async def admitted(
        self, claims: JsonObject, provider: IdentityProvider | None = None, *, signs_in: bool = False
    ) -> User:
        command = AdmitPersonCommand(provider=provider or a_provider(), claims=claims, signs_in=signs_in)
        return await self.admit.execute(command)

    @property
    def actions(self) -> list[AuditAction]:
        return [entry.action for entry in self.state.audit.values()]


@pytest.fixture
def ports() -> Ports:
    return Ports()


@pytest.mark.requirement("P1", "P2")
async def test_a_new_person_gets_a_user_with_the_role_of_the_first_matching_rule(ports: Ports) -> None:
    rules = (RoleRule(claim="groups", value="others", role=Role.VIEWER), AGENTS)

    user = await ports.admitted(ANN, a_provider(rules=rules))

    assert user == replace(a_user(UserId(numbered("usr", 1))), role=Role.VIEWER, last_sign_in_at=START)
    assert ports.state.users == {user.id: user}
    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.USER_CREATED, user.id, user.id)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("claims", [{"sub": "eve"}, {"sub": "eve", "groups": []}, {"sub": "eve", "groups": "agent"}])
async def test_a_person_without_a_matching_rule_is_refused_and_leaves_no_trace(
    ports: Ports, claims: JsonObject
) -> None:
    with refused("sign_in_refused"):
        await ports.admitted(claims)
    assert (ports.state.users, ports.actions) == ({}, [])


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("subject", [None, "", "x" * 256, "a\0b", 7])
async def test_a_person_without_a_subject_is_refused(ports: Ports, subject: str | int | None) -> None:
    with refused("sign_in_refused"):
        await ports.admitted({**ANN, "sub": subject})


@pytest.mark.requirement("P1")
async def test_nobody_is_admitted_by_a_provider_without_rules(ports: Ports) -> None:
    with refused("sign_in_refused"):
        await ports.admitted(ANN, a_provider(rules=()))


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("status", [UserStatus.DEACTIVATED, UserStatus.REMOVED])
async def test_a_user_that_is_not_active_is_refused_and_not_created_again(ports: Ports, status: UserStatus) -> None:
    ports.state.users[USER] = a_user(status=status)
    with refused("sign_in_refused"):
        await ports.admitted(ANN, signs_in=True)
    assert ports.state.users == {USER: a_user(status=status)}
    assert ports.actions == []


@pytest.mark.requirement("P2")
async def test_rules_change_the_role_unless_an_admin_chose_it(ports: Ports) -> None:
    ports.state.users[USER] = a_user(role=Role.ADMIN)
    assert (await ports.admitted(ANN)).role is Role.OPERATOR
    ports.state.users[USER] = a_user(role=Role.ADMIN, role_fixed=True)
    assert (await ports.admitted(ANN)).role is Role.ADMIN


@pytest.mark.requirement("P1")
async def test_a_sign_in_stores_and_records_what_the_provider_says(ports: Ports) -> None:
    ports.state.users[USER] = a_user()
    await ports.admitted({**ANN, "name": "Ann\nB."}, signs_in=True)
    assert ports.state.users[USER] == replace(a_user(), name="AnnB.", last_sign_in_at=START)
    [entry] = ports.state.audit.values()
    assert (entry.action, "previous_role" in entry.details) == (AuditAction.USER_SIGNED_IN, False)


@pytest.mark.requirement("P2")
async def test_an_old_token_raises_no_session_again(ports: Ports) -> None:
    ports.state.users[USER] = a_user(role=Role.VIEWER)
    assert (await ports.admitted({**ANN, "name": "Old"})).role is Role.OPERATOR
    stored = replace(a_user(role=Role.VIEWER), last_sign_in_at=START)
    assert (ports.state.users[USER], ports.actions) == (stored, [])


@pytest.mark.requirement("P2")
async def test_the_first_access_by_a_token_is_stored_and_then_one_in_an_hour(ports: Ports) -> None:
    ports.state.users[USER] = a_user()
    stored = []
    for minutes in (0, 59, 1):
        ports.clock.advance(minutes * 60)
        await ports.admitted(ANN)
        stored.append(ports.state.users[USER].last_sign_in_at)
    assert stored == [START, START, START + timedelta(hours=1)]


@pytest.mark.requirement("P2")
async def test_only_the_first_access_by_a_token_needs_a_database_that_can_be_written(
    ports: Ports, mocker: MockerFixture
) -> None:
    full = ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The disk is full.")
    mocker.patch.object(InMemoryUserStore, "accessed", autospec=True, side_effect=full)
    ports.state.users[USER] = a_user()
    with refused("storage_unavailable"):
        await ports.admitted(ANN)
    ports.state.users[USER] = replace(a_user(), last_sign_in_at=START - timedelta(days=1))
    assert (await ports.admitted(ANN)).id == USER


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("signs_in", [False, True])
async def test_who_is_another_person_by_the_time_of_the_first_access_is_refused(
    ports: Ports, mocker: MockerFixture, signs_in: bool
) -> None:
    ports.state.users[USER] = other = replace(a_user(), subject="bob")
    mocker.patch.object(InMemoryUserStore, "find", autospec=True, side_effect=[a_user(), other])
    with refused("sign_in_refused"):
        await ports.admitted(ANN, signs_in=signs_in)
    assert (ports.state.users, ports.actions) == ({USER: other}, [])


@pytest.mark.requirement("P2")
async def test_a_sign_in_that_changes_the_role_says_which_it_was(ports: Ports) -> None:
    ports.state.users[USER] = a_user(role=Role.ADMIN)
    await ports.admitted(ANN, signs_in=True)
    assert ports.state.users[USER].role is Role.OPERATOR
    [entry] = ports.state.audit.values()
    assert (entry.details["role"], entry.details["previous_role"]) == ("operator", "admin")


@pytest.mark.requirement("P1")
async def test_the_installations_provider_puts_people_into_the_organization_of_their_rule(ports: Ports) -> None:
    rule = RoleRule(claim="sub", value=ANY_VALUE, role=Role.VIEWER, organization_id=OTHER_ORG)
    user = await ports.admitted(ANN, a_provider(rules=(AGENTS, rule), installation=True))
    assert user.organization_id == ORG
    other = await ports.admitted({"sub": "bob"}, a_provider(rules=(AGENTS, rule), installation=True))
    assert (other.organization_id, other.role) == (OTHER_ORG, Role.VIEWER)


@pytest.mark.requirement("P2")
async def test_a_group_of_the_directory_gives_a_role_and_a_token_cannot_claim_it(ports: Ports) -> None:
    rule = RoleRule(claim="scim_groups", value="Agents", role=Role.OPERATOR)
    provider = a_provider(rules=(rule,))
    with refused("sign_in_refused"):
        await ports.admitted({**ANN, "scim_groups": ["Agents"]}, provider)
    ports.state.users[USER] = a_user()
    entry = DirectoryEntry(user_name="ann@example.com", external_id="ann")
    ports.state.provisioned[USER] = ProvisionedUser(
        user=a_user(), provider_id=PROVIDER, entry=entry, created_at=START, changed_at=START
    )
    group = GroupId(numbered("grp", 1))
    ports.state.groups[group] = Group(
        id=group,
        organization_id=ORG,
        provider_id=PROVIDER,
        name="Agents",
        members=(USER,),
        created_at=START,
        changed_at=START,
    )
    assert (await ports.admitted(ANN, provider)).role is Role.OPERATOR


@pytest.mark.requirement("P2")
async def test_who_has_lost_access_at_home_is_admitted_to_no_other_organization(ports: Ports) -> None:
    rule = RoleRule(claim="groups", value="agents", role=Role.VIEWER, organization_id=OTHER_ORG)
    provider = a_provider(rules=(rule,), installation=True)
    ports.state.users[USER] = a_user(status=UserStatus.DEACTIVATED)
    with refused("sign_in_refused"):
        await ports.admitted(ANN, provider)
    ports.state.users[USER] = a_user()
    assert (await ports.admitted(ANN, provider)).organization_id == OTHER_ORG


@pytest.mark.requirement("P2")
async def test_a_sign_in_makes_members_by_claim_and_ends_what_claims_no_longer_say(ports: Ports) -> None:
    claim = GroupClaim(provider_id=PROVIDER, claim="groups", value="others")
    elsewhere = replace(claim, provider_id=IdentityProviderId(numbered("idp", 2)))
    for number, (name, claims) in enumerate({"Others": (claim,), "Not these": (elsewhere,)}.items()):
        group = OrganizationGroup(
            id=GroupId(numbered("grp", number)),
            organization_id=ORG,
            name=name,
            claims=claims,
            created_at=START,
            changed_at=START,
        )
        ports.state.organization_groups[group.id] = group
    groups = InMemoryOrganizationGroupStore(ports.state)

    await ports.admitted(ANN)
    assert await groups.groups_of(ORG, UserId(numbered("usr", 1))) == frozenset()  # a token is no sign-in
    user = await ports.admitted(ANN, signs_in=True)
    assert await groups.groups_of(ORG, user.id) == {"Others"}
    assert [*ports.state.audit.values()][-1].details["groups"] == ["Others"]
    await ports.admitted({**ANN, "groups": ["agents"]}, signs_in=True)
    assert await groups.groups_of(ORG, user.id) == frozenset()
