"""A Langfuse that is down, and one that accepts traces and never answers: runs and the stop of the
service do not wait for it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.e2e.service import a_turn, serving
from tests.integration.tracing.receivers import langfuse_receiver, refusing_address

LOST = b"traces"
RUNS = 5
Absent = tuple[str, Callable[[], object]]
"""An address, and what waits until the service is sending there."""


@contextmanager
def refusing() -> Iterator[Absent]:
    with refusing_address() as url:
        yield url, lambda: True


@contextmanager
def silent() -> Iterator[Absent]:
    with langfuse_receiver(answers=False) as receiver:
        yield receiver.url, lambda: receiver.next_request().spans


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("absent", [refusing, silent])
def test_runs_complete_and_the_service_stops_while_langfuse_is_absent(
    tmp_path: Path, absent: Callable[[], AbstractContextManager[Absent]]
) -> None:
    with absent() as (url, is_sending):
        keys = {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-2", "LANGFUSE_HOST": url}
        with serving(tmp_path / "home", **keys) as service:
            service.agent("greeter", service.script("greeting", a_turn("Hello.")))
            for _ in range(RUNS):
                assert service.run("greeter")["run"]["status"] == "completed"
            assert is_sending()
            assert service.stop() == 0
        assert LOST in service.log.read_bytes()
