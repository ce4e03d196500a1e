"""docs/REQUIREMENTS.md lists exactly the tests that carry a row's mark, and the check notices when
it does not."""

from pathlib import Path

import pytest

from tests.architecture import requirements_map
from tests.architecture.requirements_map import DOCUMENT, ROW_IDS, Mark, problems, read_marks, read_rows, rewrite

ROOT = Path(__file__).parents[2]
NODE = "tests/unit/test_run.py::test_a_run_ends"


def document(**states: str) -> str:
    """A document with every row open, except as told: `A5="proven\\n\\n- `tests/…::test_x`"`."""
    sections = [f"### {row} — Title\n\nWhat is owed.\n\nState: {states.get(row, 'open')}\n" for row in ROW_IDS]
    return "# Requirements\n\n## A chapter\n\nIts introduction.\n\n" + "\n".join(sections)


def listing(state: str, *nodes: str) -> str:
    return f"{state}\n\n" + "\n".join(f"- `{node}`" for node in nodes)


def marks_in(root: Path, files: dict[str, str]) -> list[Mark]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_marks(root)


def test_the_document_and_the_marks_agree() -> None:
    found = problems((ROOT / DOCUMENT).read_text(encoding="utf-8"), read_marks(ROOT))
    assert not found, "run `make requirements`:\n" + "\n".join(found)


def test_a_document_that_lists_every_marked_test_has_no_problems() -> None:
    assert problems(document(A5=listing("proven", NODE)), [Mark(NODE, "A5")]) == []


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        pytest.param(document(A5=listing("proven", NODE)), [], id="a listed test without the mark"),
        pytest.param(document(A5=listing("proven", NODE)), [Mark(NODE, "A6")], id="a listed test with another mark"),
        pytest.param(document(), [Mark(NODE, "A5")], id="a mark that is not listed"),
        pytest.param(document(), [Mark(NODE, "A14")], id="a mark with an unknown row"),
        pytest.param(document(), [Mark(NODE, "A5", "is skipped")], id="a mark that proves nothing"),
        pytest.param(document(A5="partly"), [], id="a state without a test"),
        pytest.param(document(A5=listing("open", NODE)), [Mark(NODE, "A5")], id="an open row with a test"),
        pytest.param(document(A5=listing("done", NODE)), [Mark(NODE, "A5")], id="an unknown state"),
        pytest.param(document().replace("### A5 — Title", "### A55 — Title"), [], id="a missing row"),
        pytest.param(document() + "\n### A5 — Again\n\nWhat is owed.\n\nState: open\n", [], id="a row twice"),
        pytest.param(document().replace("What is owed.", "", 1), [], id="a row without prose"),
    ],
)
def test_a_disagreement_is_a_problem(text: str, marks: list[Mark]) -> None:
    assert problems(text, marks) != []


def test_marks_are_read_from_functions_classes_and_files(tmp_path: Path) -> None:
    text = (
        "import pytest\n"
        "pytestmark = [pytest.mark.requirement('G2')]\n"
        "@pytest.mark.requirement('A1', 'A2')\n"
        "async def test_one(): ...\n"
        "@pytest.mark.requirement('B1')\n"
        "class TestGroup:\n"
        "    def test_two(self): ...\n"
        "    def build(self): ...\n"
    )
    found = marks_in(tmp_path, {"tests/unit/test_run.py": text})
    one, two = "tests/unit/test_run.py::test_one", "tests/unit/test_run.py::TestGroup::test_two"
    assert set(found) == {Mark(one, "G2"), Mark(one, "A1"), Mark(one, "A2"), Mark(two, "G2"), Mark(two, "B1")}


SUITE = (
    "import pytest\n"
    "class Suite:\n"
    "    @pytest.mark.requirement('E2')\n"
    "    async def test_events_have_no_gap(self): ...\n"
)


def test_a_suite_counts_where_a_collected_class_inherits_it(tmp_path: Path) -> None:
    user = "from tests.contract import suite\nclass Narrower(suite.Suite): ...\nclass TestSql(Narrower): ...\n"
    (mark,) = marks_in(tmp_path, {"tests/contract/suite.py": SUITE, "tests/contract/test_sql.py": user})
    assert mark == Mark("tests/contract/suite.py::Suite::test_events_have_no_gap", "E2")


def test_a_suite_that_nothing_inherits_proves_nothing(tmp_path: Path) -> None:
    (mark,) = marks_in(tmp_path, {"tests/contract/suite.py": SUITE})
    assert mark.hollow is not None


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.mark.skip\n@pytest.mark.requirement('A1')\ndef test_one(): ...\n",
        "@pytest.mark.requirement('A1')\n@pytest.mark.xfail(reason='later')\ndef test_one(): ...\n",
        "@pytest.mark.requirement('A1')\ndef build(): ...\n",
        "class Group:\n    @pytest.mark.requirement('A1')\n    def test_one(self): ...\n",
    ],
)
def test_a_test_that_does_not_run_proves_nothing(text: str, tmp_path: Path) -> None:
    (mark,) = marks_in(tmp_path, {"tests/unit/test_run.py": text})
    assert mark.hollow is not None


def test_a_text_that_quotes_a_mark_is_no_mark(tmp_path: Path) -> None:
    assert marks_in(tmp_path, {"tests/test_x.py": 'TEXT = """@pytest.mark.requirement("A1")"""'}) == []


def test_rewriting_replaces_tests_and_keeps_prose() -> None:
    before = document(
        A5=listing("proven", "tests/test_gone.py::test_old"), A6=listing("partly", "tests/test_gone.py::x")
    )
    marks = [Mark(NODE, "A5"), Mark(NODE, "B1"), Mark("tests/a.py::test_hollow", "B2", "is skipped")]
    after = rewrite(before, marks)
    assert {row.id: (row.state, row.tests) for row in read_rows(after) if row.state != "open"} == {
        "A5": ("proven", (NODE,)),
        "B1": ("partly", (NODE,)),
    }
    assert [row.prose for row in read_rows(after)] == [row.prose for row in read_rows(before)]
    assert after.startswith("# Requirements\n\n## A chapter\n\nIts introduction.\n\n### A1")


def test_rewriting_twice_changes_nothing_more() -> None:
    once = rewrite(document(), [Mark(NODE, "A5")])
    assert rewrite(once, [Mark(NODE, "A5")]) == once


def test_the_command_reports_then_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marks_in(tmp_path, {"tests/unit/test_run.py": "@pytest.mark.requirement('A5')\ndef test_a_run_ends(): ...\n"})
    (tmp_path / "docs").mkdir()
    (tmp_path / DOCUMENT).write_text(document(), encoding="utf-8")
    assert requirements_map.main([], tmp_path) == 1
    assert NODE in capsys.readouterr().out
    assert requirements_map.main(["--write"], tmp_path) == 0
    assert (tmp_path / DOCUMENT).read_text(encoding="utf-8") == document(A5=listing("partly", NODE))
