"""Gathers the site's sources in one folder: the pages under docs/, those at the checkout's root,
and the generated references.

The site is built of a copy, so that a page may be read where it stands, in a checkout or on a
forge, with links that work there.
"""

import re
import shutil
from pathlib import Path

from docsite.api_reference import api_page, openapi_document
from docsite.command_reference import command_page
from docsite.event_reference import event_page

AT_THE_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_MARK = re.compile(r"^<!-- .*? ?-->\n", re.MULTILINE | re.DOTALL)
_FIGURES = "<!-- figures -->"
"""Where home has what was measured last: by hand it would be what was measured once."""
_RUNS_TABLE = re.compile(r"^\|.*runs/s.*\n(?:\|.*\n)+", re.MULTILINE)
_EXAMPLES_LINK = re.compile(r"\]\(((?:\.\./)*)\.\./examples/README\.md")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".mjs": "javascript"}
_DECISION = re.compile(r"^# (\d{4})\. (.+)$", re.MULTILINE)


def assemble(root: Path, target: Path) -> None:
    """Write the sources of the site to `target`, and replace what is there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "docs", target)
    for name in AT_THE_ROOT:
        (target / name).write_text(moved_into_docs((root / name).read_text(encoding="utf-8"), root), encoding="utf-8")
    home = target / "index.md"
    measured = figures((root / "docs" / "performance.md").read_text(encoding="utf-8"))
    home.write_text(home.read_text(encoding="utf-8").replace(_FIGURES, measured), encoding="utf-8")
    for page in target.rglob("*.md"):
        page.write_text(as_published(page.read_text(encoding="utf-8")), encoding="utf-8")
    (target / "examples.md").write_text(examples(root / "examples"), encoding="utf-8")
    (target / "decisions.md").write_text(decisions(root / "docs" / "adr"), encoding="utf-8")
    reference = target / "reference"
    document = openapi_document()
    (reference / "api.md").write_text(api_page(document), encoding="utf-8")
    (reference / "cli.md").write_text(command_page(), encoding="utf-8")
    (reference / "events.md").write_text(event_page(), encoding="utf-8")


def moved_into_docs(text: str, root: Path) -> str:
    """A page of the checkout's root as it reads from within docs/: links to pages there are
    shortened, those to anything the site has not become plain text."""

    def moved(link: "re.Match[str]") -> str:
        picture, label, path, anchor = link.groups()
        if "://" in path or path in AT_THE_ROOT:
            return link[0]
        inside = path.removeprefix("docs/")
        if path == "examples/README.md":
            return f"[{label}](examples.md{anchor or ''})"
        if inside != path and (root / path).is_file():
            return f"{picture}[{label}]({inside}{anchor or ''})"
        if path == "docs/adr":
            return f"[{label}](decisions.md)"
        return label

    return _LINK.sub(moved, text)


def figures(performance: str) -> str:
    """The table of runs a second on the page about performance."""
    table = _RUNS_TABLE.search(performance)
    if table is None:
        raise ValueError("docs/performance.md has no table of runs/s, which home shows.")
    return table[0]


def as_published(text: str) -> str:
    """A page of docs/ as the site has it: without the marks that tests read, and with the examples
    as a page beside the others."""
    return _EXAMPLES_LINK.sub(r"](\1examples.md", _MARK.sub("", text))


def examples(folder: Path) -> str:
    """The page about the examples, with each file it names at its end."""
    text = as_published((folder / "README.md").read_text(encoding="utf-8"))
    names = [link[3] for link in _LINK.finditer(text) if Path(link[3]).suffix in _LANGUAGES and "://" not in link[3]]
    files = [
        f"## {name}\n\n```{_LANGUAGES[Path(name).suffix]}\n{(folder / name).read_text(encoding='utf-8')}```\n"
        for name in dict.fromkeys(names)
    ]

    def link(found: "re.Match[str]") -> str:
        if found[3].startswith("../docs/"):
            return found[0].replace("../docs/", "", 1)
        return f"[{found[2]}](#{_anchor(found[3])})" if found[3] in names else found[0]

    linked = _LINK.sub(link, text)
    return "\n".join([linked, *files])


def _anchor(heading: str) -> str:
    """How the site names a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def decisions(folder: Path) -> str:
    """The list of architecture decision records."""
    lines = ["# Decisions", "", "Why things are as they are, one page each.", ""]
    for path in sorted(folder.glob("[0-9]*.md")):
        title = _DECISION.search(path.read_text(encoding="utf-8"))
        if title is None:
            raise ValueError(f"{path.name} does not begin with `# NNNN. Title`.")
        lines.append(f"- [{title[1]}](adr/{path.name}) {title[2]}")
    return "\n".join(lines) + "\n"
