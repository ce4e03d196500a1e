"""`dragoman secret`."""

import io
import sys

import pytest

from interfaces.cli.failures import BadUsage
from interfaces.cli.typed_input import read_secret
from tests.unit.interfaces.cli.fake_service import FakeService, problem

SECRET = {"name": "TOKEN", "created_at": "2026-01-01T12:00:00Z", "updated_at": "2026-01-01T12:00:01Z"}


@pytest.mark.requirement("C7")
def test_a_value_comes_from_the_pipe_without_its_last_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService().on("POST", "/v1/secrets", dict(SECRET))
    monkeypatch.setattr(sys, "stdin", io.StringIO("two\nlines\n"))

    outcome = service.run("secret", "set", "TOKEN")

    assert outcome.exit_code == 0
    assert service.sent("POST", "/v1/secrets") == [{"name": "TOKEN", "value": "two\nlines"}]
    assert "two" not in outcome.out + outcome.err


@pytest.mark.requirement("C7")
def test_no_value_is_taken_from_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert service.run("secret", "set", "TOKEN", "the-value").exit_code == 2
    assert service.run("secret", "set", "TOKEN").exit_code == 2
    assert service.requests == []


def test_a_person_is_asked_and_may_change_their_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            return "s3cret"
        raise EOFError

    monkeypatch.setattr(sys, "stdin", Person())
    monkeypatch.setattr("getpass.getpass", typed)
    assert read_secret("Value: ") == "s3cret"
    with pytest.raises(BadUsage):
        read_secret("Value: ")
    assert asked == ["Value: ", "Value: "]


@pytest.mark.requirement("C7")
def test_secrets_are_listed_by_name() -> None:
    service = FakeService().on("GET", "/v1/secrets", {"data": [dict(SECRET)], "next_cursor": None})
    assert "TOKEN" in service.run("secret", "list").out
    assert service.run("secret", "list", "--json").json["data"] == [SECRET]


@pytest.mark.requirement("C7")
def test_a_secret_in_use_is_one_line_and_exit_code_1() -> None:
    refusal = problem(409, "secret_in_use", "The secret 'TOKEN' is used by the MCP server mail.")
    outcome = FakeService().on("DELETE", "/v1/secrets/TOKEN", refusal).run("secret", "delete", "TOKEN")
    assert (outcome.exit_code, outcome.err) == (1, "Error: The secret 'TOKEN' is used by the MCP server mail.\n")


@pytest.mark.requirement("B12")
def test_a_rotation_shows_its_progress_and_its_count() -> None:
    service = FakeService().on(
        "POST",
        "/v1/secrets/rotate",
        {"reencrypted": 200, "remaining": 100},
        {"reencrypted": 100, "remaining": 0},
    )
    outcome = service.run("secret", "rotate")
    assert outcome.exit_code == 0
    assert "Re-encrypted 200 values, 100 remain." in outcome.err
    assert "300 values were re-encrypted" in outcome.err


@pytest.mark.requirement("B12")
def test_a_rotation_that_does_not_get_on_ends_with_exit_code_1() -> None:
    service = FakeService().on("POST", "/v1/secrets/rotate", {"reencrypted": 0, "remaining": 3})
    assert service.run("secret", "rotate").exit_code == 1
