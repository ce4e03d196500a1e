"""A run whose MCP server's access token ends between two of its calls, over a real service and a
real authorization server."""

import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, assert_consistent, parts
from tests.e2e.test_secrets_and_authorization import oauth_outside
from tests.integration.mcp.oauth_world import CLIENT, SECRET, World

pytestmark = [pytest.mark.requirement("B12"), pytest.mark.timeout(300)]

WHO = "mcp__tickets__whoami"


def register(service: Service, world: World, auth: str) -> None:
    """The protected server, authorized as far as that needs a person."""
    how: Json = {"type": auth}
    if auth == "oauth_client_credentials":
        how |= {"client_id": CLIENT, "client_secret": SECRET}
    service.call("POST", "/mcp-servers", {"slug": "tickets", "kind": "http", "url": world.protected.url, "auth": how})
    if auth == "oauth_authorization_code":
        url = service.call("POST", "/mcp-servers/tickets/authorize")["authorization_url"]
        back = world.authorization.authorize(url)
        assert httpx.get(f"{service.url}/oauth/callback", params=back, trust_env=False, timeout=60).status_code == 200
    service.call("POST", "/mcp-servers/tickets/refresh")


def start_run_that_stops_between_its_calls(service: Service) -> tuple[str, Path]:
    """A run that has called the server once, and will again when the file is there."""
    gate = service.home / "gate"
    log = service.watched_server("watched")
    turns = (a_turn("", (WHO, {})), a_turn("", ("mcp__watched__held_look", {"gate": str(gate)})), a_turn("", (WHO, {})))
    service.agent("caller", service.script("calls", *turns, a_turn("Done.")), mcp_servers=["tickets", "watched"])
    run_id = service.start_run("caller")
    until(lambda: log.exists() and "called held_look" in log.read_text(encoding="utf-8"), what="the call between")
    return run_id, gate


def results(answer: Json) -> list[Json]:
    return [part for part in parts(answer["messages"], "tool_result") if part["tool_name"] == WHO]


@pytest.mark.parametrize(
    ("auth", "grant"),
    [("oauth_client_credentials", "client_credentials"), ("oauth_authorization_code", "refresh_token")],
)
@pytest.mark.parametrize("end", ["of its life", "by the server"])
def test_a_token_that_ends_in_the_middle_of_a_run_is_renewed_and_the_run_does_not_notice(
    service: Service, auth: str, grant: str, end: str
) -> None:
    with oauth_outside() as world:
        world.authorization.expires_in = 2 if end == "of its life" else 3600
        register(service, world, auth)
        run_id, gate = start_run_that_stops_between_its_calls(service)
        asked, refused = world.authorization.asked[grant], world.protected.refused
        if end == "of its life":
            ended_at = time.monotonic() + world.authorization.expires_in
            until(lambda: time.monotonic() > ended_at, what="the end of the token")
        world.authorization.withdraw_access()
        world.authorization.expires_in = 3600
        gate.touch()

        answer = service.wait(run_id)

        assert (answer["run"]["status"], answer["run"]["output"]) == ("completed", "Done.")
        assert [result["is_error"] for result in results(answer)] == [False, False]
        assert_consistent(answer["messages"], service.events(run_id))
        assert world.protected.calls == 2
        assert world.authorization.asked[grant] == asked + 1
        # Whose life is over is renewed before anybody refuses it.
        assert world.protected.refused == refused + (0 if end == "of its life" else 1)
        assert service.call("GET", "/mcp-servers/tickets/status")["state"] == "connected"


@pytest.mark.parametrize("auth", ["oauth_client_credentials", "oauth_authorization_code"])
def test_a_token_that_is_not_renewed_any_more_is_told_to_the_model_the_run_and_the_operator(
    service: Service, auth: str
) -> None:
    with oauth_outside() as world:
        register(service, world, auth)
        run_id, gate = start_run_that_stops_between_its_calls(service)
        world.authorization.withdraw_access()
        world.authorization.refuses = "invalid_grant"
        gate.touch()

        answer = service.wait(run_id)

        assert (answer["run"]["status"], answer["run"]["output"]) == ("completed", "Done.")
        first, second = results(answer)
        assert (first["is_error"], second["is_error"]) == (False, True)
        assert "needs authorization" in second["result"]
        events = service.events(run_id)
        assert_consistent(answer["messages"], events)
        [failed] = [event for event in events if event["type"] == "tool.failed"]
        assert (failed["name"], failed["server"], failed["error"]["code"]) == (WHO, "tickets", "mcp_needs_auth")
        status = service.call("GET", "/mcp-servers/tickets/status")
        assert status["state"] == "needs_auth"
        assert status["last_error"]
        assert world.protected.calls == 1
