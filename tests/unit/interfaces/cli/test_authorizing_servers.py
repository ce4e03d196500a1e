"""`dragoman mcp authorize`, and how `mcp add` says as whom Dragoman calls."""

from pathlib import Path

import pytest

from domain.json_value import JsonObject
from interfaces.http.mcp_servers.views import McpServerView
from tests.unit.interfaces.cli.fake_service import FakeService, problem, whole

pytestmark = pytest.mark.requirement("B12")

URL = "https://auth.example.org/authorize?state=x"


def test_the_address_to_open_is_on_stdout_alone() -> None:
    document: JsonObject = {"authorization_url": URL, "expires_at": "2026-01-01T12:10:00Z"}
    service = FakeService().on("POST", "/v1/mcp-servers/tickets/authorize", document)
    outcome = service.run("mcp", "authorize", "tickets")
    assert (outcome.exit_code, outcome.out) == (0, f"{URL}\n")
    assert "2026-01-01T12:10:00Z" in outcome.err
    assert service.run("mcp", "authorize", "tickets", "--json").json == document


def test_why_it_cannot_be_authorized_is_one_line() -> None:
    refusal = problem(409, "not_listening", "A browser has to come back to the service, and none is running.")
    outcome = FakeService().on("POST", "/v1/mcp-servers/tickets/authorize", refusal).run("mcp", "authorize", "tickets")
    assert outcome.exit_code == 1
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--oauth"], {"auth": {"type": "oauth_authorization_code"}}),
        (
            ["--auth", '{"type": "oauth_client_credentials", "client_id": "me", "private_key": {"secret": "KEY"}}'],
            {"auth": {"type": "oauth_client_credentials", "client_id": "me", "private_key": {"secret": "KEY"}}},
        ),
        (["--bearer-secret", "TOKEN"], {"auth": {"type": "bearer", "token": {"secret": "TOKEN"}}}),
        (
            ["--header-secret", "X-Key=TOKEN", "--header", "X-Plain=a"],
            {"headers": {"X-Plain": "a", "X-Key": {"secret": "TOKEN"}}},
        ),
    ],
)
def test_a_remote_server_is_added_with_secrets_by_name(options: list[str], expected: JsonObject) -> None:
    made = whole(McpServerView, {"id": "mcp_1", "slug": "tickets", "kind": "http"})
    service = FakeService().on("POST", "/v1/mcp-servers", made)
    service.run("mcp", "add", "tickets", "--url", "https://mcp.example.org/mcp", *options)
    (sent,) = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(sent, dict)
    assert {name: sent.get(name) for name in expected} == expected


def test_a_remote_server_is_added_with_certificates_from_files(tmp_path: Path) -> None:
    made = whole(McpServerView, {"id": "mcp_1", "slug": "tickets", "kind": "http"})
    service = FakeService().on("POST", "/v1/mcp-servers", made)
    certificate, authorities = tmp_path / "client.pem", tmp_path / "ca.pem"
    certificate.write_text("a certificate")
    authorities.write_text("an authority")
    add = ("mcp", "add", "tickets", "--url", "https://mcp.example.org/mcp")
    shown = ("--client-certificate", str(certificate))
    service.run(*add, *shown, "--client-key-secret", "TLS_KEY", "--ca", str(authorities))
    (sent,) = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(sent, dict)
    assert sent["tls"] == {"certificate": "a certificate", "private_key": {"secret": "TLS_KEY"}, "ca": "an authority"}
    assert "belong together" in service.run(*add, *shown).err
    assert "cannot be read" in service.run(*add, "--ca", str(tmp_path / "none.pem")).err


def test_a_started_server_is_added_with_secrets_by_name() -> None:
    service = FakeService().on(
        "POST", "/v1/mcp-servers", whole(McpServerView, {"id": "mcp_1", "slug": "mail", "kind": "custom"})
    )
    service.run("mcp", "add", "mail", "--env-secret", "TOKEN=MAIL_TOKEN", "--", "run")
    (sent,) = service.sent("POST", "/v1/mcp-servers")
    assert isinstance(sent, dict)
    assert sent["env"] == {"TOKEN": {"secret": "MAIL_TOKEN"}}


@pytest.mark.parametrize(
    "options", [["--env-secret", "TOKEN"], ["--env-secret", "=X"], ["--oauth", "--bearer-secret", "X"]]
)
def test_options_that_say_nothing_clear_are_bad_usage(options: list[str]) -> None:
    service = FakeService()
    assert service.run("mcp", "add", "x", "--url", "https://mcp.example.org/mcp", *options).exit_code == 2
    assert service.requests == []
