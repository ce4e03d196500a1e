"""Runners delete no thread, and no file of a thread, that another key has run agents on."""

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.ids import ApiKeyId
from tests.builders import KEY, ORG, THREAD, a_deletion, a_run, a_thread
from tests.contract.run_steps import finish_step, start, start_and_claim
from tests.contract.stores import Stores
from tests.contract.test_sources import a_source, a_source_id, deleted, put


@pytest.mark.requirement("C6")
async def test_a_runner_deletes_no_thread_that_another_key_has_run_agents_on(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, a_run(requested_by=KEY))
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    stranger = ApiKeyId("key_stranger")
    with pytest.raises(ServiceError) as refused:
        await run_stores.threads.delete(ORG, THREAD, a_deletion(), as_runner=stranger)
    assert (refused.value.code, refused.value.kind) == ("thread_not_yours", ErrorKind.FORBIDDEN)
    assert await run_stores.threads.get(ORG, THREAD) is not None
    assert await run_stores.threads.delete(ORG, THREAD, a_deletion(), as_runner=KEY)


@pytest.mark.requirement("C6")
async def test_a_runner_deletes_a_thread_without_runs(stores: Stores) -> None:
    await stores.threads.add(a_thread())
    assert await stores.threads.delete(ORG, THREAD, a_deletion(), as_runner=ApiKeyId("key_stranger"))


@pytest.mark.requirement("C6")
async def test_a_runner_deletes_no_source_of_a_thread_that_another_key_has_run_agents_on(run_stores: Stores) -> None:
    await start(run_stores, a_run(requested_by=KEY))
    await put(run_stores, a_source(), "walrus")
    with pytest.raises(ServiceError) as refused:
        await run_stores.sources.delete(ORG, a_source_id(1), deleted(), as_runner=ApiKeyId("key_stranger"))
    assert refused.value.code == "thread_not_yours"
    assert await run_stores.sources.get(ORG, a_source_id(1)) is not None
    assert await run_stores.sources.delete(ORG, a_source_id(1), deleted(), as_runner=KEY)
