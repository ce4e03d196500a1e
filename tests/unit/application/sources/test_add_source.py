"""AddSource: who may add a file to a thread, and what is audited. How it is stored:
test_store_source.py."""

from collections.abc import AsyncIterator

import pytest
from pytest_mock import MockerFixture, MockType

from application.sources.add_source import AddSource, AddSourceCommand
from application.sources.store_source import StoreSource, StoreSourceCommand
from application.threads.ports import ThreadStore
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, not_found
from domain.identity.role import Role
from domain.sources.source import Source
from tests.builders import ORG, THREAD
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.sources.files import a_source

STORED = a_source(size=5)


async def content() -> AsyncIterator[bytes]:
    yield b"hello"


class Ports:
    """A mock that stores every file as STORED; `audited` has what it was given to write."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.store: MockType = mocker.create_autospec(StoreSource, instance=True)
        self.store.execute.side_effect = self._stored
        self.threads: MockType = mocker.create_autospec(ThreadStore, instance=True)
        self.audited: list[AuditEvent] = []
        self.file = content()

    async def add(self, role: Role = Role.RUNNER) -> Source:
        adding = AddSource(store=self.store, threads=self.threads, clock=FixedClock(), ids=SequentialIds())
        command = AddSourceCommand(principal=a_principal(role), thread_id=THREAD, name="notes.txt", content=self.file)
        return await adding.execute(command)

    async def _stored(self, command: StoreSourceCommand) -> Source:
        self.audited.append(command.audit(STORED))
        return STORED


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C6", "D4")
@pytest.mark.parametrize("role", [Role.RUNNER, Role.OPERATOR, Role.ADMIN])
async def test_runners_and_above_add_a_file_to_a_thread_of_their_organization(ports: Ports, role: Role) -> None:
    assert await ports.add(role) == STORED

    [command] = ports.store.execute.await_args.args
    assert (command.organization_id, command.thread_id, command.run_id) == (ORG, THREAD, None)
    assert (command.name, command.content) == ("notes.txt", ports.file)
    assert command.source_id.startswith("src_")


@pytest.mark.requirement("C5")
async def test_a_new_source_is_audited_with_name_size_and_digest(ports: Ports) -> None:
    await ports.add()

    [entry] = ports.audited
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.SOURCE_ADDED, "key_runner", STORED.id)
    assert entry.details == {"thread_id": THREAD, "name": "notes.txt", "size": 5, "sha256": STORED.digest}


@pytest.mark.requirement("C6")
async def test_a_viewer_adds_no_source(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.add(Role.VIEWER)

    ports.store.execute.assert_not_awaited()


@pytest.mark.parametrize("failure", [not_found("thread", THREAD), storage_away()], ids=lambda failure: failure.code)
async def test_a_file_that_cannot_be_stored_is_refused_with_the_reason(ports: Ports, failure: ServiceError) -> None:
    ports.store.execute.side_effect = failure

    with refused(failure.code):
        await ports.add()
