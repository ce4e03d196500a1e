"""The documentation's site as readers have it: built of the checkout, opened in a browser, without
anything from elsewhere."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

from docsite.pages import assemble
from tests.e2e.browser import Person, browsing, needs_browser
from tests.e2e.service import ROOT

ZENSICAL = ROOT / ".venv-docs" / "bin" / "zensical"
pytestmark = pytest.mark.timeout(600)
needs_zensical = pytest.mark.skipif(not ZENSICAL.exists(), reason="needs `make docs`")


def built(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Build what is under `folder`, strictly."""
    return subprocess.run(
        [ZENSICAL, "build", "--strict"],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    assemble(ROOT, folder / "build" / "docs")
    done = built(folder)
    assert done.returncode == 0, done.stdout + done.stderr

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder / "build" / "site")))
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    serving.join()


@needs_browser()
@needs_zensical
def test_the_site_is_read_and_searched_without_anything_from_elsewhere(site: str) -> None:
    with browsing() as browser:
        reader = Person(browser, site)
        asked: list[str] = []
        reader.page.on("request", lambda request: asked.append(request.url))
        for path in (
            "/index.html",
            "/reference/api.html",
            "/reference/cli.html",
            "/examples.html",
            "/guides/workflows.html",
        ):
            reader.go(path)
            reader.page.get_by_role("heading", level=1).first.wait_for()
        reader.go("/index.html")
        reader.page.keyboard.press("/")
        expect(reader.page.locator("input:focus")).to_have_count(1)  # letters are keys of the page before
        reader.page.keyboard.type("approval")
        reader.page.get_by_role("link", name="Approvals").first.wait_for()
        assert len(asked) > 10
        assert [url for url in asked if not url.startswith((site, "data:", "blob:"))] == []
        assert reader.complaints == []


@needs_zensical
@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](index.md#gone)"])
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str) -> None:
    pages = tmp_path / "build" / "docs"
    pages.mkdir(parents=True)
    (tmp_path / "mkdocs.yml").write_text("site_name: x\ndocs_dir: build/docs\nsite_dir: build/site\n", encoding="utf-8")
    (pages / "index.md").write_text(f"# Page\n\n{link}\n", encoding="utf-8")
    assert built(tmp_path).returncode != 0
