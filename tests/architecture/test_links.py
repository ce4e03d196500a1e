"""Links between the documents lead somewhere."""

import re
from pathlib import Path

from tests.architecture.published_files import tracked_files

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def dead_links(root: Path, documents: list[Path]) -> list[str]:
    """`document: target` of every relative link whose target is not there."""
    return [
        f"{document.relative_to(root)}: {target}"
        for document in documents
        for target in _LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in target and not (document.parent / target).exists()
    ]


def test_every_relative_link_of_a_document_leads_to_a_file() -> None:
    documents = [ROOT / path for path in tracked_files(ROOT) if str(path).endswith(".md")]
    assert documents
    assert dead_links(ROOT, documents) == []


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#part) [b](gone.md) [c](https://example.com/x)", encoding="utf-8")
    assert dead_links(tmp_path, [page]) == ["page.md: gone.md"]
