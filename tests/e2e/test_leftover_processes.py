"""However the service ends, no process of its stdio servers outlives it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.processes import carrying, descendants, living, until
from tests.e2e.service import STOP_S, Service, a_turn, serving

SERVERS = 10
HELD_S = 150
"""How long a call may be held; much longer than the servers take to start."""


def ten_held_servers(service: Service) -> None:
    """Ten stdio servers, each with a call in progress that will never be answered."""
    slugs = [f"held{number}" for number in range(SERVERS)]
    logs = [service.watched_server(slug, timeout_s=HELD_S) for slug in slugs]
    calls = [(f"mcp__{slug}__held_note", {"gate": str(service.home / "never")}) for slug in slugs]
    limits = {"tool_timeout_s": HELD_S, "turn_tool_timeout_s": HELD_S}
    half = SERVERS // 2  # a turn runs fewer calls than ten at a time
    for name, its_slugs, its_calls in (("a", slugs[:half], calls[:half]), ("b", slugs[half:], calls[half:])):
        service.agent(name, service.script(name, a_turn("", *its_calls)), mcp_servers=its_slugs, limits=limits)
        service.start_run(name)
    until(lambda: all(log.exists() and "called held_note" in log.read_text() for log in logs), 120, "all calls")


def terminate(service: Service) -> None:
    assert service.stop(signal.SIGTERM) == 0


def kill(service: Service) -> None:
    assert service.stop(signal.SIGKILL) == -signal.SIGKILL


def kill_the_group(service: Service) -> None:
    os.killpg(service.process.pid, signal.SIGKILL)
    assert service.process.wait(timeout=STOP_S) == -signal.SIGKILL


@pytest.mark.requirement("B3", "E7")
@pytest.mark.parametrize("end", [terminate, kill, kill_the_group])
def test_no_process_is_left_with_ten_stdio_servers_at_work(tmp_path: Path, end: Callable[[Service], None]) -> None:
    with serving(tmp_path / "home") as service:
        ten_held_servers(service)
        started = descendants(service.process.pid)
        marked = carrying(str(service.home))
        assert len(marked & started) >= SERVERS
        end(service)
        # A killed service tells nobody; its launchers notice by themselves.
        until(lambda: not started & living().keys(), what="the end of every descendant")
        until(lambda: not carrying(str(service.home)), what="the end of every server")
