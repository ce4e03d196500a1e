"""Secrets are found wherever they hide, and words that are none are left alone."""

import json

import pytest

from domain.secrets.names import is_secret_name
from infrastructure.secrets.redaction import REDACTED, Redactor

SECRET = 'p4ss "w/rd" über'


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"connecting with {SECRET} failed",
        "https://h/?key=p4ss%20%22w%2Frd%22%20%C3%BCber&x=1",
        json.dumps({"key": SECRET}),
        json.dumps({"key": SECRET}, ensure_ascii=False),
    ],
)
def test_a_registered_secret_is_replaced_in_every_form(text: str) -> None:
    redacted = Redactor([SECRET]).redact(text)

    assert REDACTED in redacted
    assert "p4ss" not in redacted


def test_a_secret_that_contains_another_is_replaced_whole() -> None:
    assert Redactor(["abcdef", "abcdef-ghijkl"]).redact("x abcdef-ghijkl y abcdef") == f"x {REDACTED} y {REDACTED}"


def test_short_values_are_words_and_stay() -> None:
    assert Redactor(["", "a", "admin"]).redact("an admin") == "an admin"


def test_secrets_registered_later_are_hidden_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.redact("the later-secret") == "the later-secret"

    redactor.register("later-secret")

    assert redactor.redact("the later-secret") == f"the {REDACTED}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key dgm_" + "0123456789abcdefghij!", f"key {REDACTED}!"),
        ("using sk-" + "0123456789abcdef", f"using {REDACTED}"),
        ("Authorization: Bearer abcdefghijkl, next", f"Authorization: Bearer {REDACTED}, next"),
        ("Basic cGstbGY6c2stbGY=", f"Basic {REDACTED}"),
        ("the bearer of news, a basic question", "the bearer of news, a basic question"),
        ("task-force risk-assessment-of-things-to-come", "task-force risk-assessment-of-things-to-come"),
    ],
)
def test_tokens_nobody_registered_are_known_by_their_form(text: str, expected: str) -> None:
    assert Redactor().redact(text) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Authorization", "X-Api-Key", "apiKey", "API_KEY", "APIKey", "apikey", "token"),
        *("accessToken", "DB_PASSWORD", "client-secret", "private_key", "Set-Cookie", "aws.secret.access.key"),
    ],
)
def test_names_of_secrets_are_recognized(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["input_tokens", "tokenizer", "key", "author", "monkey", "secretary", "basket", ""])
def test_names_of_other_things_are_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.requirement("B12")
def test_structures_are_redacted_by_name_and_by_value() -> None:
    value = {
        "headers": {"Authorization": "whatever it is", "Accept": "text/plain"},
        "calls": [{"args": ("plain", "has hunter22 inside")}],
        "max_token": 5,
        "token": None,
        "blob": b"bytes of hunter22",
        "other": ValueError("said hunter22"),
    }

    assert Redactor(["hunter22"]).redact_value(value) == {
        "headers": {"Authorization": REDACTED, "Accept": "text/plain"},
        "calls": [{"args": ["plain", f"has {REDACTED} inside"]}],
        "max_token": 5,
        "token": None,
        "blob": f"bytes of {REDACTED}",
        "other": f"said {REDACTED}",
    }


def test_a_structure_without_end_is_cut() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless

    assert REDACTED in str(Redactor().redact_value(endless))
