"""Secrets written out in arguments and URLs: found by name and form, and nothing else is taken for
one."""

import pytest

from application.mcp.literal_secrets import literal_secrets_in_args, literal_secrets_in_command, literal_secrets_in_url
from domain.secrets.names import references_in, without_references

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
OF_MODELS = f"sk-{LETTERS}"

pytestmark = pytest.mark.requirement("B12")


@pytest.mark.parametrize(
    "args",
    [
        ["--token", "abc"],
        ["--api-key=abc"],
        ["--apiKey", "abc"],
        ["-token=abc"],
        ["API_KEY=abc"],
        ["--db.password=abc"],
        ["--header", "Authorization: Bearer abcdefgh"],
        ["--header", "X-Api-Key: abc"],
        ["Authorization:Basic abc"],
        ["postgresql://me:pl4nted@db/tickets"],
        ["https://mcp.example.com/mcp?access_token=abc"],
        ["--config", f"{{'key': '{OF_MODELS}'}}"],
        [f"ghp_{LETTERS}"],
        [f"AKIA{LETTERS[:16].upper()}"],
        [f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}"],
    ],
)
def test_arguments_with_a_secret_are_found(args: list[str]) -> None:
    [found] = literal_secrets_in_args(["--first", "x", *args])
    assert found.path == f"args.{len(args) + 1}"
    assert args[-1] not in found.message


@pytest.mark.parametrize(
    "command", [f"TOKEN={LETTERS} tickets-server", "tickets-server --api-key abc", f"/usr/lib/{OF_MODELS}/start"]
)
def test_a_command_with_a_secret_is_found_and_not_repeated(command: str) -> None:
    [found] = literal_secrets_in_command(command)
    assert found.path == "command"
    assert "abc" not in found.message


@pytest.mark.parametrize("command", [None, "npx", "/usr/lib/token server/start", "token-server", "C=1"])
def test_a_command_without_one_is_left_alone(command: str | None) -> None:
    assert literal_secrets_in_command(command) == []


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-y", "@modelcontextprotocol/server-memory", "/srv/data"],
        ["--token-file", "/run/token"],
        ["--secret-name=tickets"],
        ["--token", "--verbose"],
        ["--token"],
        ["--max-tokens", "1000"],
        ["--key", "value"],
        ["--header", "Authorization:${AUTH_HEADER}"],
        ["--header", "Authorization: Bearer ${TOKEN}"],
        ["--api-key", "$API_KEY"],
        ["-c", "import os; token = os.environ['TOKEN']"],
        ["postgresql://me@db/tickets"],
        ["https://mcp.example.com/mcp?workspace=token"],
    ],
)
def test_arguments_without_one_are_left_alone(args: list[str]) -> None:
    assert literal_secrets_in_args(args) == []


@pytest.mark.parametrize(
    "rest",
    [
        "?token=abc",
        "?a=1&api_key=abc",
        "?apiKey=abc",
        "?exaApiKey=abc",
        "?key=abc",
        "?password=abc",
        "?client_secret=abc",
        "?access_token=abc",
        "?sig=abc",
        "?%74oken=abc",
        f"?q={OF_MODELS}",
        f"/glpat-{LETTERS}/mcp",
        "#access_token=abc",
        "?token=${secret:A}rest",
    ],
)
def test_a_url_with_a_secret_is_found(rest: str) -> None:
    [found] = literal_secrets_in_url(f"https://mcp.example.com/mcp{rest}")
    assert found.path == "url"
    assert "${secret:NAME}" in found.message


@pytest.mark.parametrize(
    "url",
    [
        "https://mcp.example.com/mcp",
        "https://mcp.example.com/mcp?workspace=7&page_token_limit=3",
        "https://mcp.example.com/mcp?token=",
        "https://mcp.example.com/mcp?token=${secret:TICKETS}",
        "https://mcp.example.com/s/${secret:TICKETS}/mcp",
    ],
)
def test_a_url_without_one_is_left_alone(url: str) -> None:
    assert literal_secrets_in_url(url) == []


def test_a_reference_may_not_choose_the_host() -> None:
    [found] = literal_secrets_in_url("https://${secret:HOST}/mcp")
    assert found.message == "may refer to secrets in its path and its query only"


def test_references_are_replaced_one_by_one() -> None:
    url = "https://h/s/${secret:A}/mcp?k=${secret:B}"
    assert references_in(url) == ("A", "B")
    assert without_references(url, ["1", "${secret:A}"]) == "https://h/s/1/mcp?k=${secret:A}"
