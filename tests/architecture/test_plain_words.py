"""The words of the product: phrases that a reader has to guess at are in no source file and no
page."""

from pathlib import Path

import pytest

from tests.architecture.plain_words import REWRITES, files_of, riddles_in

ROOT = Path(__file__).parents[2]
PLACES = (
    "src",
    "clients",
    "README.md",
    "CONTRIBUTING.md",
    "docs",
)


@pytest.mark.parametrize("place", PLACES)
def test_no_source_and_no_page_has_a_phrase_that_readers_guess_at(place: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}"
        for path in files_of(ROOT / place)
        for line, phrase in riddles_in(path.read_text(encoding="utf-8"))
    ]
    assert not found, "see plain_words.REWRITES for what to write:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("The run goes on.", [(1, "goes on")]),
        ("First.\nThe client\n    is\n    told it.", [(3, "is\n    told")]),
        ("# A file of\n# its own", [(1, "of\n# its own")]),
        ("`doorbell` is a name of another project.", []),
        ("The client gets its own file again.", []),
    ],
)
def test_phrases_are_found_across_lines_and_not_in_code(text: str, hits: list[tuple[int, str]]) -> None:
    assert list(riddles_in(text)) == hits


def test_each_phrase_has_what_to_write_instead() -> None:
    assert all(REWRITES.values())
