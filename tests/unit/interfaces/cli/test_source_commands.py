"""`dragoman source`."""

from pathlib import Path

import pytest

from domain.json_value import JsonObject
from domain.sources.source import MAX_SOURCE_BYTES
from tests.unit.interfaces.cli.fake_service import FakeService, problem

SOURCE: JsonObject = {
    "id": "src_1",
    "thread_id": "thr_1",
    "name": "a b.csv",
    "kind": "csv",
    "size": 3,
    "sha256": "00",
    "searchable": True,
    "problem": None,
    "run_id": None,
    "created_at": "2026-01-01T12:00:00Z",
}
PATH = "/v1/threads/thr_1/sources"


@pytest.mark.requirement("D4")
def test_a_file_is_added_under_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "a b.csv"
    file.write_bytes(b"a\xff\0")
    service = FakeService().on("POST", PATH, SOURCE)

    outcome = service.run("source", "add", "thr_1", str(file))

    assert (outcome.exit_code, outcome.err) == (0, "Added a b.csv as src_1: csv, searchable.\n")
    (request,) = service.requests
    assert request.content == b"a\xff\0"
    assert request.url.params["name"] == "a b.csv"
    assert request.headers["content-type"] == "application/octet-stream"


def test_a_file_may_be_given_another_name_and_the_answer_printed_as_json(tmp_path: Path) -> None:
    file = tmp_path / "download"
    file.write_bytes(b"x")
    service = FakeService().on("POST", PATH, SOURCE)
    outcome = service.run("source", "add", "thr_1", str(file), "--name", "report.md", "--json")
    assert outcome.json == SOURCE
    assert service.requests[0].url.params["name"] == "report.md"


def test_a_file_that_cannot_be_read_or_is_too_large_is_bad_usage(tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    service = FakeService()
    for path in (tmp_path / "none", tmp_path, large):
        outcome = service.run("source", "add", "thr_1", str(path))
        assert outcome.exit_code == 2
        assert outcome.err.count("\n") == 1
    assert service.requests == []


def test_a_refused_file_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"x")
    service = FakeService().on("POST", PATH, problem(404, "thread_not_found", "There is no thread 'thr_1'."))
    outcome = service.run("source", "add", "thr_1", str(file))
    assert (outcome.exit_code, outcome.err) == (
        1,
        "Error: There is no thread 'thr_1'. `dragoman thread list` shows all.\n",
    )


def test_files_are_listed_with_what_keeps_them_from_being_searched() -> None:
    broken: JsonObject = {**SOURCE, "id": "src_2", "searchable": False, "problem": "The PDF is damaged."}
    service = FakeService().on("GET", PATH, {"data": [broken, SOURCE], "next_cursor": None})
    out = service.run("source", "list", "thr_1").out
    assert "The PDF is damaged" in out
    assert out.index("src_2") < out.index("src_1")
    assert service.run("source", "list", "thr_1", "--json").json["data"] == [broken, SOURCE]


def test_a_thread_without_files_says_so() -> None:
    service = FakeService().on("GET", PATH, {"data": [], "next_cursor": None})
    outcome = service.run("source", "list", "thr_1")
    assert "The thread thr_1 has no files." in outcome.out + outcome.err


def test_a_file_is_deleted_by_its_id() -> None:
    service = FakeService().on("DELETE", "/v1/sources/src_1", {})
    assert service.run("source", "delete", "src_1").exit_code == 0
    assert [request.url.path for request in service.requests] == ["/v1/sources/src_1"]
