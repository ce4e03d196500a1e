"""The memory that a process may use, by the limits of its control group and the groups around
it."""

from pathlib import Path

import pytest

from infrastructure.runtime.available_memory import available_memory, group_limits
from infrastructure.settings import load_settings


@pytest.mark.parametrize(
    ("group", "files", "limits"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "100\n", "a/memory.max": "max\n", "memory.max": "70\n"}, [100, 70]),
        ("0::/../gone\n", {"memory.max": "70\n"}, [70]),
        ("7:cpu:/a\n3:memory:/a\n", {"memory/a/memory.limit_in_bytes": "50\n", "memory.max": "70"}, [50]),
        ("", {"memory.max": "70"}, []),
    ],
    ids=["version 2", "in a container", "version 1", "none"],
)
def test_the_limits_of_a_control_group_and_of_those_around_it_hold(
    tmp_path: Path, group: str, files: dict[str, str], limits: list[int]
) -> None:
    own, root = tmp_path / "own", tmp_path / "groups"
    own.write_text(group)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    assert group_limits(own, root) == limits


def test_a_quarter_of_the_memory_is_for_bodies_and_one_for_transcripts_of_several_times_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 0 < load_settings().work_bytes <= available_memory() // 32
    monkeypatch.setenv("DRAGOMAN_MEMORY_BYTES", str(640 * 1024**2))
    assert load_settings().work_bytes == 20 * 1024**2
