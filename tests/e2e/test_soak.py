"""A few seconds of what `make chaos` does for longer: runs one after the other on one service."""

from pathlib import Path

import pytest

from chaos.soak import prepare, soaked
from tests.e2e.service import serving


@pytest.mark.requirement("E7")
def test_many_runs_leave_no_growing_memory_no_flood_of_lines_and_no_wal_at_rest(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        prepare(service)
        assert soaked(service, runs=60, at_once=6) == []
