"""People give a started server their own secrets, in the browser and in the command line, and their
waiting runs go on with a process of their own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.dragoman_process import Dragoman
from tests.e2e.identity_provider import IdentityProvider, needs_identity_provider, providing, register
from tests.e2e.service import Json, Service, a_turn, serving
from tests.e2e.test_on_behalf import begin, reached
from tests.e2e.test_sign_in import signed_in, with_token
from tests.integration.mcp.parts import SERVERS

pytestmark = [pytest.mark.timeout(240), pytest.mark.requirement("P3"), needs_identity_provider(), needs_browser()]

TOOL = "mcp__wiki__whoami"
PROGRAM = str(SERVERS / "person_server.py")
PLANTED = {"ann": "t0ken-of-ann", "bob": "t0ken-of-bob"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


def signed_in_page(
    browser: Browser, service: Service, provider: IdentityProvider, registered: Json, name: str, *, width: int
) -> Person:
    """A page of the person, with the sign-in of another client."""
    person = Person(browser, service.url, width=width)
    with httpx.Client(trust_env=False, timeout=60.0) as client:
        signed_in(client, service, provider, registered, name)
        cookies = [
            {"name": cookie.name, "value": cookie.value or "", "url": service.url, "httpOnly": True}
            for cookie in client.cookies.jar
            if cookie.domain.startswith("127.0.0.1")
        ]
    person.page.context.add_cookies(cookies)  # type: ignore[arg-type]
    return person


def of_person(service: Service, token: str) -> Dragoman:
    dragoman = Dragoman(Path("/nonexistent"))
    dragoman.environment |= {"DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": token}
    return dragoman


def test_runs_wait_for_the_secret_of_their_person_and_go_on_with_a_process_of_theirs(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with serving(home, DRAGOMAN_LOG_LEVEL="debug") as service, providing(service) as provider:
        registered = register(service, provider)
        admin = Dragoman(home)
        admin.environment |= {"DRAGOMAN_URL": service.url, "DRAGOMAN_API_KEY": service.key}
        admin.run("mcp", "add", "wiki", "--credentials", "person", "--env-secret", "TOKEN=person:token", "--",
                  sys.executable, "-I", "-S", PROGRAM)  # fmt: skip
        turns = (a_turn("", (TOOL, {})), a_turn("Done."))
        service.agent("caller", service.script("caller", *turns), mcp_servers=["wiki"])
        tokens = {name: provider.tokens(name)["id_token"] for name in PLANTED}

        # The first person who gives theirs has the tools listed.
        of_bob = of_person(service, tokens["bob"])
        assert "Gave token for wiki." in of_bob.run("account", "set", "wiki", piped=PLANTED["bob"]).err
        assert "connected" in of_bob.run("account", "list").out

        with with_token(service, tokens["ann"]) as ann, with_token(service, tokens["bob"]) as bob:
            waiting = begin(ann)
            run = reached(ann, waiting, "requires_action")
            assert f"{service.url}/console/accounts?server=wiki" in str(run)
            assert "nna" not in str(run)

            person = signed_in_page(browser, service, provider, registered, "ann", width=390)
            person.go("/console/accounts?server=wiki")
            assert AXE.exists()
            assert person.violations() == []
            assert person.page.evaluate("document.documentElement.scrollWidth") <= 390
            expect(person.page.get_by_text("given to your own process of")).to_contain_text("person_server.py")
            person.page.get_by_label("token").fill(PLANTED["ann"])
            person.page.get_by_role("button", name="Save").click()
            expect(person.page.get_by_role("link", name="Replace secrets for wiki")).to_be_visible()
            assert PLANTED["ann"] not in person.page.content()
            assert person.complaints == []
            person.page.context.close()

            ended = {"ann": reached(ann, waiting, "completed"), "bob": reached(bob, begin(bob), "completed")}
            for name, run in ended.items():
                messages = service.call("GET", f"/threads/{run['thread_id']}/messages")["data"]
                assert PLANTED[name][::-1] in str(messages)
                assert all(token not in str(messages) for token in PLANTED.values())
                events = service.call("GET", f"/runs/{run['id']}/events?limit=100")
                assert all(token not in str(events) for token in PLANTED.values())
            logs = str(service.call("GET", "/mcp-servers/wiki/logs"))
            assert ("started with" in logs, [token for token in PLANTED.values() if token in logs]) == (True, [])

            assert "Disconnected your account at wiki." in of_bob.run("account", "disconnect", "wiki").err
            reached(bob, begin(bob), "requires_action")
            reached(ann, begin(ann), "completed")
    for file in (each for each in home.rglob("*") if each.is_file()):
        assert all(token.encode() not in file.read_bytes() for token in PLANTED.values()), file
