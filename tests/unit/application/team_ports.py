"""CallerTeams and TeamChecks over in-memory tables."""

from application.identity.caller_teams import CallerTeams
from application.identity.team_checks import TeamChecks
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.people import InMemoryUserStore
from tests.doubles.state import InMemoryState


def caller_teams(state: InMemoryState) -> CallerTeams:
    return CallerTeams(
        memberships=InMemoryOrganizationGroupStore(state),
        identities=InMemoryIdentityStore(state),
        user_access=InMemoryUserStore(state),
        custom_roles=InMemoryCustomRoleStore(state),
    )


def team_checks(state: InMemoryState) -> TeamChecks:
    return TeamChecks(memberships=InMemoryOrganizationGroupStore(state))
