"""A run on behalf of its person, from the sign-in at a real identity provider to a real MCP server
that checks the token."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio.from_thread
import httpx
import pytest

from tests.e2e.identity_provider import IdentityProvider, needs_identity_provider, providing, register
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, results_by_tool, serving
from tests.e2e.test_sign_in import signed_in, with_token
from tests.integration.mcp.trusting_server import TrustingServer, trusting

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P4"), needs_identity_provider()]

TOOL = "mcp__tickets__whoami"
A_SIGNED_TOKEN = b"eyJhbGciOi"
"""How each of them begins."""


@contextmanager
def tickets(provider: IdentityProvider) -> Iterator[TrustingServer]:
    """The MCP server, in a thread."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(trusting(provider.issuer)) as server,
    ):
        yield server


def sign_in(service: Service, provider: IdentityProvider, registered: Json, name: str) -> None:
    """At the console, in a browser of the person's own."""
    with httpx.Client(trust_env=False, timeout=60.0) as browser:
        signed_in(browser, service, provider, registered, name)


def begin(caller: httpx.Client) -> str:
    """The id of a run of the person."""
    response = caller.post("/v1/runs", json={"agent": "caller", "input": "Go."})
    assert response.is_success, response.text
    return str(response.json()["id"])


def reached(caller: httpx.Client, run_id: str, status: str) -> Json:
    """The run, once it has this status."""
    found: Json = {}

    def is_there() -> bool:
        found.update(caller.get(f"/v1/runs/{run_id}").json())
        return bool(found["status"] == status)

    until(is_there)
    return found


def result_of(service: Service, run: Json) -> Json:
    messages = service.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
    return results_by_tool(messages)[TOOL]


def test_a_run_waits_for_the_sign_in_of_its_person_and_goes_on_as_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home, DRAGOMAN_LOG_LEVEL="debug") as service, providing(service) as provider:
        registered = register(service, provider)
        with tickets(provider) as server:
            auth: Json = {"type": "oauth_token_exchange"}
            remote: Json = {"kind": "http", "url": server.url, "slug": "tickets", "auth": auth}
            service.call("POST", "/mcp-servers", {**remote, "credentials": "person"})
            turns = (a_turn("", (TOOL, {})), a_turn("Done."))
            service.agent("caller", service.script("caller", *turns), mcp_servers=["tickets"])

            # Bob's sign-in serves Bob: he lists the tools, and nobody else acts with it.
            sign_in(service, provider, registered, "bob")
            with with_token(service, provider.tokens("bob")["id_token"]) as bob:
                assert bob.post("/v1/mcp-servers/tickets/refresh").is_success
                assert {claims["sub"] for claims in server.seen} == {"bob"}
                by_key = service.run("caller")
                result = results_by_tool(by_key["messages"])[TOOL]
                assert (result["is_error"], "a person who signed in must start this" in str(result)) == (True, True), (
                    result
                )

                with with_token(service, provider.tokens("ann")["id_token"]) as ann:
                    waiting = begin(ann)
                    run = reached(ann, waiting, "requires_action")
                    assert f"{service.url}/console/accounts?server=tickets" in str(run)
                    [account] = ann.get("/v1/me/accounts").json()["data"]
                    assert account["connected"] is False
                    assert {claims["sub"] for claims in server.seen} == {"bob"}

                    sign_in(service, provider, registered, "ann")
                    run = reached(ann, waiting, "completed")
                    assert "ann by dragoman" in str(result_of(service, run)["result"])
                    [account] = ann.get("/v1/me/accounts").json()["data"]
                    assert (account["connected"], account["issuer"]) == (True, provider.issuer)

                    # Disconnected, the sign-in is forgotten for this server, and the next run waits
                    # again.
                    assert ann.delete("/v1/me/accounts/tickets").is_success
                    reached(ann, begin(ann), "requires_action")
                run = reached(bob, begin(bob), "completed")
                assert "bob by dragoman" in str(result_of(service, run)["result"])
            entries = service.call("GET", "/audit-events?action=account.connected")["data"]
            assert {entry["details"]["by"] for entry in entries} == {"sign-in"}
    for file in (each for each in home.rglob("*") if each.is_file()):
        assert A_SIGNED_TOKEN not in file.read_bytes(), file
