"""Each use case has a unit-test file at the mirrored path that constructs it."""

from pathlib import Path

from tests.architecture.use_case_tests import OPEN, ROOT, is_tested, untested, use_cases


def test_each_use_case_has_a_test_file_of_the_same_name_unless_it_is_listed_as_open() -> None:
    listed = OPEN.read_text(encoding="utf-8").splitlines()
    assert untested(ROOT) == listed


def test_a_use_case_without_a_test_file_is_found(tmp_path: Path) -> None:
    source = tmp_path / "src/application/runs/start_run.py"
    source.parent.mkdir(parents=True)
    source.write_text("class StartRun:\n    async def execute(self) -> None: ...\n", encoding="utf-8")
    (use_case,) = use_cases(tmp_path)
    assert not is_tested(tmp_path, use_case)

    test = tmp_path / "tests/unit/application/runs/test_start_run.py"
    test.parent.mkdir(parents=True)
    test.write_text("# StartRun()\n", encoding="utf-8")
    assert not is_tested(tmp_path, use_case)

    test.write_text("StartRun()\n", encoding="utf-8")
    assert is_tested(tmp_path, use_case)


def test_a_read_among_queries_has_a_test_file_of_its_own_name_or_one_with_the_others(tmp_path: Path) -> None:
    source = tmp_path / "src/application/agents/queries.py"
    source.parent.mkdir(parents=True)
    source.write_text("class GetAgent:\n    async def execute(self) -> None: ...\n", encoding="utf-8")
    (use_case,) = use_cases(tmp_path)
    folder = tmp_path / "tests/unit/application/agents"
    folder.mkdir(parents=True)
    (folder / "test_list_agents.py").write_text("GetAgent()\n", encoding="utf-8")
    assert not is_tested(tmp_path, use_case)

    for name in ("test_get_agent.py", "test_queries.py"):
        (folder / name).write_text("GetAgent()\n", encoding="utf-8")
        assert is_tested(tmp_path, use_case)
        (folder / name).unlink()


def test_a_port_with_execute_is_no_use_case(tmp_path: Path) -> None:
    source = tmp_path / "src/application/runs/ports.py"
    source.parent.mkdir(parents=True)
    source.write_text("class Executes(Protocol):\n    async def execute(self) -> None: ...\n", encoding="utf-8")
    assert use_cases(tmp_path) == []
