"""What `dragoman serve` offers to a person at a terminal: a link that signs in, the explorer, what
is missing."""

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import COMMAND, DEADLINE_S, Dragoman
from tests.e2e.service import serving


@contextmanager
def serving_on_a_terminal(dragoman: Dragoman, *arguments: str) -> Iterator[str]:
    """What the service prints on a terminal until it is ready for requests."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "serve", *arguments], env=dragoman.environment, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    try:
        said = ""
        with os.fdopen(ours, "rb", closefd=False) as terminal:
            while "No server" not in said:
                line = terminal.readline()
                assert line, process.stderr.read() if process.stderr else ""
                said += line.decode()
        yield said
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
        os.close(ours)


@pytest.mark.requirement("C6", "U2")
def test_on_a_terminal_it_prints_a_link_that_signs_in_once_and_says_what_is_missing(tmp_path: Path) -> None:
    with serving_on_a_terminal(Dragoman(tmp_path / "home"), "--host", "127.0.0.1", "--port", "0") as said:
        key = (tmp_path / "home" / "admin.key").read_text().strip()
        assert key in said, "the first key is shown on the first start"
        assert "No model" in said
        found = re.search(r"http://127\.0\.0\.1:\d+/console/sign-in/\S+", said)
        assert found is not None
        assert key not in found[0]
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            assert "Sign in</button>" in browser.get(found[0]).text
            elsewhere = browser.post(found[0], headers={"origin": "https://attacker.example"})
            assert elsewhere.status_code == 403
            assert "<h1>Overview" in browser.post(found[0]).text
        with httpx.Client(follow_redirects=True, timeout=60) as other:
            refused = other.post(found[0])
            assert refused.status_code == 401
            assert "dragoman open" in refused.text


def test_the_command_open_makes_another_link(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        link = DragomanHere(tmp_path / "home").run("open").out.strip()
        assert link.startswith(f"{service.url}/console/sign-in/")
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            assert "<h1>Overview" in browser.post(link).text


@needs_browser()
@pytest.mark.timeout(240)
def test_the_explorer_shows_every_operation_from_own_files_and_sends_requests_with_a_key(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service, browsing() as browser:
        person = Person(browser, service.url)
        asked: list[str] = []
        person.page.on("request", lambda request: asked.append(request.url))
        person.go("/docs")
        page = person.page
        page.get_by_role("button", name="Authorize").first.click(timeout=120_000)  # when it has drawn every operation
        page.locator(".modal-ux").get_by_role("textbox").fill(service.key)
        page.locator(".modal-ux").get_by_role("button", name="Apply credentials").click()
        page.locator(".modal-ux").get_by_role("button", name="Close").last.click()
        page.locator("#operations-tag-Agents").get_by_role("button").first.click()
        operation = page.locator("#operations-Agents-list_agents")
        operation.get_by_role("button").first.click()
        page.get_by_role("button", name="Execute").click()
        expect(operation.locator(".live-responses-table")).to_contain_text("200")
        assert [url for url in asked if not url.startswith((service.url, "data:"))] == []
        assert person.complaints == []
