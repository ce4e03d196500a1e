"""Where people find the trace of a run."""

import pytest

from infrastructure.tracing.addresses import BackendTraceAddresses
from tests.builders import a_run


@pytest.mark.requirement("G1")
def test_langfuse_has_a_page_for_a_trace_and_a_collector_its_id_alone() -> None:
    run = a_run()
    page = BackendTraceAddresses(enabled=True, web="https://langfuse.example.com/").of(run)
    collected = BackendTraceAddresses(enabled=True, web=None).of(run)
    assert page is not None
    assert collected is not None
    assert page.url == f"https://langfuse.example.com/trace/{page.trace_id}"
    assert (collected.trace_id, collected.url) == (page.trace_id, None)
    assert BackendTraceAddresses(enabled=False, web=None).of(run) is None
