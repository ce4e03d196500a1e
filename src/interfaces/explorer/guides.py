"""The documentation as pages of the service: the guides of the distribution, from Markdown to
HTML."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path

PATH = "/docs/guides"
_BEFORE = ("first-run.md", "concepts.md")
"""Pages that come before the guides, in the directory above them."""
_BUILT = ("api.md", "cli.md", "events.md")
"""Pages of the reference that only the built site has: they are written from the code."""
_NO_SLUG = re.compile(r"[^\w -]")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Dragoman</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/explorer.css">
</head>
<body>
<nav aria-label="Dragoman">
  <strong>Dragoman</strong>
  <a href="/console">Console</a>
  <a href="/docs/guides">Documentation</a>
  <a href="/docs">API</a>
</nav>
<div class="pages">
<nav aria-label="Pages"><ul>
{pages}
</ul></nav>
<main>
{content}
</main>
</div>
</body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A page of Markdown without the marks of its tests."""

    name: str
    title: str
    text: str


@cache
def guides() -> Mapping[str, Guide]:
    """All pages by name: first steps, then guides and reference by title. Empty in a distribution
    without documentation."""
    directory = _documentation()
    if directory is None:
        return {}
    first = [_guide(directory / name) for name in _BEFORE]
    parts = [sorted(_pages(directory / part), key=lambda page: page.title.lower()) for part in ("guides", "reference")]
    return {page.name: page for page in (*first, *parts[0], *parts[1])}


def guide_page(name: str) -> bytes | None:
    """The page in HTML, or None if there is none of that name."""
    return _rendered(name) if name in guides() else None


@cache
def _rendered(name: str) -> bytes:
    """Kept for the names there are: strangers may ask for any other."""
    guide = guides()[name]
    return _page(guide.title, _html(guide.text), current=name)


def guides_page() -> bytes:
    """The first page: a list of all."""
    entries = "\n".join(
        f'<li><a href="{PATH}/{guide.name}">{escape(guide.title)}</a></li>' for guide in guides().values()
    )
    return _page("Documentation", f"<h1>Documentation</h1>\n<ul>\n{entries}\n</ul>")


def _documentation() -> Traversable | None:
    """In an installation beside this module, in a checkout at its root."""
    installed = files("interfaces.explorer") / "documentation"
    if installed.is_dir():
        return installed
    checkout = Path(__file__).parents[3] / "docs"
    return checkout if (checkout / "guides").is_dir() else None


def _pages(directory: Traversable) -> list[Guide]:
    built = _BUILT if directory.name == "reference" else ()
    return [_guide(file) for file in directory.iterdir() if file.name.endswith(".md") and file.name not in built]


def _guide(file: Traversable) -> Guide:
    text = _without_comments(file.read_text(encoding="utf-8"))
    title = next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), file.name)
    return Guide(name=file.name.removesuffix(".md"), title=title, text=text)


def _without_comments(text: str) -> str:
    first, *others = text.split("<!--")
    return first + "".join(other.partition("-->")[2].removeprefix("\n") for other in others)


def _page(title: str, content: str, *, current: str | None = None) -> bytes:
    pages = "\n".join(_entries(current))
    return _PAGE.format(title=escape(title), pages=pages, content=content).encode()


def _entries(current: str | None) -> Iterator[str]:
    for guide in guides().values():
        mark = ' aria-current="page"' if guide.name == current else ""
        yield f'<li><a href="{PATH}/{guide.name}"{mark}>{escape(guide.title)}</a></li>'


def _html(text: str) -> str:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _slug(following.content))
    for token in [child for block in tokens for child in block.children or ()]:
        if token.type == "link_open":
            token.attrSet("href", _target(str(token.attrGet("href"))))
        elif token.type == "image":
            token.attrSet("src", "data:,")
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _slug(heading: str) -> str:
    return _NO_SLUG.sub("", heading).strip().lower().replace(" ", "-")


def _target(href: str) -> str:
    """A link as the service has it: another page, a place of this one, or another site; else the
    first page."""
    path, _, place = href.partition("#")
    if "://" in href or not path:
        return href
    name = path.rpartition("/")[2].removesuffix(".md")
    if path.endswith(".md") and name in guides() and not path.endswith(tuple(f"reference/{page}" for page in _BUILT)):
        return f"{PATH}/{name}{f'#{place}' if place else ''}"
    return PATH
