"""A running service for each test: over tables in memory and over PostgreSQL."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import cast

import pytest

from tests.databases import PostgresDatabases
from tests.integration.http.service import Harness, Service
from tests.integration.http.tables import InMemoryTables, PostgresTables, Tables

ON_POSTGRES = {
    "test_agents",
    "test_approvals",
    "test_attacks_on_organizations",
    "test_audit",
    "test_gateway_agents",
    "test_gateway_approvals",
    "test_gateway_tasks",
    "test_model_providers",
    "test_organization",
    "test_stop_button",
    "test_threads_and_runs",
    "test_tool_policies",
}
"""Files of what stores and finds. The others are about what comes before tables: bodies, headers,
roles."""
ONLY_IN_MEMORY = {
    "test_verifying_names_the_event_that_was_edited": "edits a row behind the service's back",
    "test_a_run_is_started_in_the_background": "reads what no answer shows",
    "test_a_run_in_progress_is_asked_to_stop": "claims a run that it looks up in the tables",
    "test_a_pending_call_names_its_approval_which_is_listed": "two approvals of one moment are in no order",
}
ALSO_ON_POSTGRES = {
    "test_what_belongs_to_another_organization_is_not_found",
    "test_lists_show_nothing_of_another_organization",
    "test_every_route_takes_the_roles_above_the_one_it_is_for",
    "test_a_token_opens_nothing_from_the_moment_its_session_expires",
    "test_tokens_of_others_and_of_roles_that_may_not_open_nothing",
    "test_a_revoked_token_opens_nothing_from_that_moment",
    "test_a_session_of_a_run_is_refused_once_the_run_has_ended",
    "test_what_belongs_to_a_team_is_not_found_by_people_outside_of_it",
    "test_lists_show_nothing_of_a_team_to_people_outside_of_it",
    "test_filters_do_not_find_what_belongs_to_a_team",
    "test_who_leaves_the_group_sees_nothing_more_at_the_next_request",
    "test_a_group_that_owns_something_is_neither_deleted_nor_renamed",
    "test_a_thread_gets_the_team_of_the_first_agent_that_has_one",
}
"""Of the other files."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test of tables runs over both kinds."""
    if "tables" not in metafunc.fixturenames:
        return
    name, module = metafunc.function.__name__, metafunc.module.__name__.rpartition(".")[2]
    on_postgres = (module in ON_POSTGRES and name not in ONLY_IN_MEMORY) or name in ALSO_ON_POSTGRES
    metafunc.parametrize(
        "tables", ["memory", "postgres"] if on_postgres else ["memory"], indirect=True, scope="session"
    )


@pytest.fixture(scope="session")
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """The tables under test."""
    if request.param == "memory":
        yield InMemoryTables()
        return
    databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
    with databases.fresh() as url:
        yield PostgresTables(url, partial(databases.empty_of_rows, url))


@pytest.fixture(scope="module")
def harness(tables: Tables) -> Harness:
    """A file's own: its clock goes on whenever it is read, and a day of it is over after some
    hundred tests."""
    return Harness(tables)


@pytest.fixture
async def service(harness: Harness) -> AsyncIterator[Service]:
    async with harness.service() as running:
        yield running


@pytest.fixture
def team() -> str | None:
    """The team of what `names` of test_access makes; None: it belongs to the organization."""
    return None
