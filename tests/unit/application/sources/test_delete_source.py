"""DeleteSource: who may delete a file of a thread, also while a run is under way."""

import pytest
from pytest_mock import MockerFixture

from application.sources.delete_source import DeleteSource, DeleteSourceCommand
from application.sources.ports import SourceStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import SourceId
from domain.runs.run import RunStatus
from tests.builders import RUN, a_run
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredRun
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.sources.files import a_source, a_state_with, a_stored_source

SOURCE = a_source().id


@pytest.fixture
def state() -> InMemoryState:
    return a_state_with(a_stored_source())


async def delete(sources: SourceStore, principal: Principal, source_id: SourceId = SOURCE) -> None:
    deleting = DeleteSource(sources=sources, clock=FixedClock(), ids=SequentialIds())
    await deleting.execute(DeleteSourceCommand(principal=principal, source_id=source_id))


@pytest.mark.requirement("C5", "C6")
@pytest.mark.parametrize("role", [Role.RUNNER, Role.OPERATOR, Role.ADMIN])
async def test_runners_and_above_delete_a_source_which_is_audited(state: InMemoryState, role: Role) -> None:
    await delete(InMemorySourceStore(state), a_principal(role))

    assert not state.sources
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SOURCE_DELETED, f"key_{role}", SOURCE)


async def test_a_source_is_deleted_while_a_run_of_its_thread_is_under_way(state: InMemoryState) -> None:
    state.runs[RUN] = StoredRun(run=a_run(status=RunStatus.IN_PROGRESS))

    await delete(InMemorySourceStore(state), a_principal())

    assert not state.sources


async def test_an_unknown_source_is_not_found(state: InMemoryState) -> None:
    with refused("source_not_found"):
        await delete(InMemorySourceStore(state), a_principal(), SourceId("src_unknown"))

    assert not state.audit


@pytest.mark.requirement("C6")
async def test_a_source_of_another_organization_is_not_found_and_stays(state: InMemoryState) -> None:
    with refused("source_not_found"):
        await delete(InMemorySourceStore(state), a_stranger())

    assert SOURCE in state.sources


@pytest.mark.requirement("C6")
async def test_a_viewer_deletes_no_source(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)

    with refused("role_insufficient"):
        await delete(sources, a_principal(Role.VIEWER))

    sources.delete.assert_not_awaited()


async def test_a_storage_failure_is_not_taken_for_a_missing_source(mocker: MockerFixture) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    sources.delete.side_effect = storage_away()

    with refused("storage_unavailable"):
        await delete(sources, a_principal())


@pytest.mark.requirement("C6")
async def test_a_runner_deletes_no_source_of_a_thread_that_another_key_has_run_agents_on(state: InMemoryState) -> None:
    state.runs[RUN] = StoredRun(run=a_run())

    with refused("thread_not_yours"):
        await delete(InMemorySourceStore(state), a_principal(Role.RUNNER))

    assert (list(state.sources), state.audit) == ([SOURCE], {})
    await delete(InMemorySourceStore(state), a_principal(Role.OPERATOR))
    assert not state.sources
