"""Fifty cycles of connect, call and kill leave nothing behind; `make chaos` runs a thousand."""

import pytest

from chaos.cycles import over_http, over_stdio

CYCLES = 50


@pytest.mark.requirement("B3", "B8")
async def test_started_servers_that_come_and_go_leave_no_process_descriptor_task_or_object() -> None:
    outcome = await over_stdio(CYCLES)
    assert outcome.leaks == []


@pytest.mark.requirement("B8")
async def test_remote_servers_that_come_and_go_leave_no_descriptor_task_or_object() -> None:
    outcome = await over_http(CYCLES)
    assert outcome.leaks == []
