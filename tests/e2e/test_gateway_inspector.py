"""The MCP Inspector connects to the gateway without a pasted token: its command line, and its pages
in a real browser."""

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.consent import People
from tests.e2e.front_door import TOOL, a_front_door
from tests.e2e.identity_provider import needs_identity_provider
from tests.e2e.processes import until
from tests.e2e.service import ROOT
from tests.e2e.test_gateway_conformance import NODES
from tests.e2e.test_gateway_oauth_clients import allowed, found_in

INSPECTOR = ROOT.joinpath(
    *("tests", "node", "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
)

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.requirement("P5"),
    needs_identity_provider(),
    pytest.mark.skipif(not (NODES and INSPECTOR.exists()), reason="needs `make node peers`"),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with a_front_door(tmp_path_factory.mktemp("inspector") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


def a_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@contextmanager
def inspector(people: People, home: Path, *arguments: str, opens: bool) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The program, and the file with what it tells people. It remembers tokens in its home."""
    opener = home / "bin" / "xdg-open"
    opener.parent.mkdir(exist_ok=True)
    opener.write_text("#!/bin/sh\n")
    opener.chmod(0o755)
    environment = {
        "PATH": os.pathsep.join([str(opener.parent), str(NODES[-1].parent), os.environ["PATH"]]),
        "HOME": str(home),
        "MCP_AUTO_OPEN_ENABLED": "true" if opens else "false",
        "MCP_INSPECTOR_SECRET_STORE": "file",
        **{name: a_port() for name in ("CLIENT_PORT", "MCP_SANDBOX_PORT", "MCP_APP_ORIGIN_PORT")},
    }
    url = f"{people.service.url}/mcp?agent=reader"
    command = [str(NODES[-1]), str(INSPECTOR), *arguments, "--transport", "http", "--server-url", url]
    log = home / "told"
    with (
        log.open("w", encoding="utf-8") as told,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True, env=environment) as process,
    ):
        try:
            yield process, log
        finally:
            process.kill()


def called(people: People, home: Path, *arguments: str, consents: bool) -> str:
    """What the tool says to a call of the command line."""
    given = json.dumps({"text": "the inspector"})
    call = ("--method", "tools/call", "--tool-name", TOOL, "--tool-args-json", given, "--format", "json")
    callback = ("--callback-url", f"http://127.0.0.1:{a_port()}/oauth/callback")
    with inspector(people, home, "--cli", *call, *callback, *arguments, opens=True) as (process, log):
        if consents:
            until(lambda: found_in(log, people) is not None, what="the address for the browser")
            allowed(people, found_in(log, people) or "")
        said, _ = process.communicate(timeout=180)
        assert process.returncode == 0, log.read_text(encoding="utf-8")
    return str(json.loads(said)["result"]["content"][0]["text"])


def test_its_command_line_connects_after_a_consent_and_remembers_it_in_both_generations(
    people: People, tmp_path: Path
) -> None:
    says = "look says the inspector"
    assert called(people, tmp_path, consents=True) == says
    assert called(people, tmp_path, "--stored-auth-only", consents=False) == says
    assert called(people, tmp_path, "--stored-auth-only", "--protocol-era", "modern", consents=False) == says


def allow(page: Page) -> None:
    """Sign in with the company's account, and press Allow until the browser goes back."""
    page.get_by_role("button", name="Sign in with company").click()
    page.get_by_label("Name").fill("ann")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Allow MCP Inspector?").wait_for()
    button = page.get_by_role("button", name="Allow")

    def is_back() -> bool:
        # A press while the button is being enabled can be lost.
        with suppress(PlaywrightTimeout):
            button.click(timeout=10_000)
            page.wait_for_url(lambda url: "/console/" not in url, wait_until="commit", timeout=10_000)
        return "/console/" not in page.url

    until(is_back, what="the browser goes back to the inspector")


@needs_browser()
def test_its_pages_connect_after_a_consent_in_the_same_browser(
    chromium: Browser, people: People, tmp_path: Path
) -> None:
    with inspector(people, tmp_path, "--web", opens=False) as (process, _):
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+API_TOKEN=\w+", line)))
        page = Person(chromium, people.service.url).page
        page.goto(address)
        page.get_by_role("switch").first.check(force=True)  # its track lies over it
        allow(page)
        page.locator("label").get_by_text("Tools", exact=True).click()
        page.get_by_role("button", name=TOOL, exact=True).click()
        page.get_by_label("text", exact=True).fill("its pages")
        page.get_by_role("button", name="Execute Tool").click()
        page.get_by_text("look says its pages").first.wait_for()
        page.context.close()
