"""A service that is killed again and again while runs are in hand; `make chaos CHAOS_ARGS=kills`
does so for longer."""

from pathlib import Path

import pytest

from chaos.kills import Drill, drilled


@pytest.mark.requirement("E4", "E7")
@pytest.mark.timeout(300)
def test_runs_complete_however_often_their_service_is_killed(tmp_path: Path) -> None:
    assert list(drilled(tmp_path, Drill(kills=3, runs=3, turn_ms=500))) == []
