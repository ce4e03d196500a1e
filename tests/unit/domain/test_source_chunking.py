"""Cutting texts into pieces: nothing is lost, every piece knows its lines, none is too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.sources.chunking import MAXIMUM, chunks_of, chunks_of_pages, decoded
from domain.sources.source import SourceChunk, SourceKind

TEXTS = st.lists(st.text(alphabet=st.sampled_from("ab #`,\t"), max_size=60) | st.just(""), max_size=80).map("\n".join)
PARAGRAPH = "word " * 60


def pieces(text: str, kind: SourceKind = SourceKind.TEXT) -> list[SourceChunk]:
    return list(chunks_of(text, kind))


@pytest.mark.requirement("D4")
def test_a_short_text_is_one_piece_without_the_blank_lines_around_it() -> None:
    (piece,) = pieces("\n\n  first\n\nlast  \n\n\n")
    assert (piece.text, piece.start_line, piece.end_line) == ("  first\n\nlast  ", 3, 5)


@pytest.mark.requirement("D4")
def test_a_long_text_is_cut_between_paragraphs() -> None:
    text = "\n\n".join(f"{number} {PARAGRAPH}" for number in range(12))
    found = pieces(text)
    assert len(found) > 1
    assert all(piece.text[0].isdigit() for piece in found)
    assert [piece.start_line % 2 for piece in found] == [1] * len(found)


@pytest.mark.requirement("D4")
def test_markdown_is_cut_before_headings_and_its_pieces_know_what_they_stand_under() -> None:
    text = f"# Guide\n{PARAGRAPH}\n## Install\n{PARAGRAPH}\n```\n# a comment\n```\n{PARAGRAPH}\n## Use\nrun it\n# Other\nend"
    found = pieces(text, SourceKind.MARKDOWN)
    assert [(piece.heading, piece.start_line) for piece in found] == [
        ("Guide", 1),
        ("Guide > Install", 3),
        ("Guide > Use", 9),
    ]


def test_rows_of_csv_keep_the_first_row_as_their_heading() -> None:
    text = "name,city\n" + "\n".join(f"person {number},town {number}" for number in range(300))
    first, *others = pieces(text, SourceKind.CSV)
    assert first.heading is None
    assert first.text.startswith("name,city\n")
    assert len(others) > 1
    assert {piece.heading for piece in others} == {"name,city"}


@pytest.mark.requirement("D4")
def test_a_huge_line_is_cut_between_words_and_all_its_pieces_have_its_number() -> None:
    line = " ".join(str(number) for number in range(20_000))
    found = pieces(f"before\n{line}\nafter")
    inner = found[1:-1]
    assert {(piece.start_line, piece.end_line) for piece in inner} == {(2, 2)}
    assert "".join(piece.text for piece in found).replace("\n", "") == f"before{line}after"
    assert all(piece.text.split()[0].isdigit() for piece in inner)


def test_a_huge_line_without_blanks_is_cut_all_the_same() -> None:
    found = pieces("x" * 10_000)
    assert "".join(piece.text for piece in found) == "x" * 10_000


def test_a_text_of_nothing_but_line_ends_has_no_pieces() -> None:
    assert pieces("\n" * 100_000) == []


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("blank", ["\n", " \t\n", "\u3000\n"])
def test_lines_behind_many_blank_ones_keep_their_numbers(blank: str) -> None:
    found = pieces("first\n" + blank * 70_000 + "  last\nend")
    assert [(piece.text, piece.start_line, piece.end_line) for piece in found] == [
        ("first", 1, 1),
        ("  last\nend", 70_002, 70_003),
    ]


def test_pieces_of_a_document_count_lines_on_their_page() -> None:
    found = list(chunks_of_pages(["one\ntwo", "", "three"]))
    assert [(piece.page, piece.start_line, piece.end_line) for piece in found] == [(1, 1, 2), (3, 1, 1)]


@pytest.mark.requirement("D4")
@given(text=TEXTS, kind=st.sampled_from(list(SourceKind)))
def test_every_line_is_in_a_piece_and_every_piece_is_where_it_says(text: str, kind: SourceKind) -> None:
    lines = text.split("\n")
    found = pieces(text, kind)
    covered: set[int] = set()
    for piece in found:
        assert len(piece.text) <= MAXIMUM
        assert piece.text.split("\n") == lines[piece.start_line - 1 : piece.end_line]
        numbers = set(range(piece.start_line, piece.end_line + 1))
        assert not covered & numbers
        covered |= numbers
    assert {number for number, line in enumerate(lines, start=1) if line.strip()} <= covered
    assert found == pieces(text, kind)


@given(text=st.text(max_size=9_000))
def test_no_character_of_a_line_is_lost(text: str) -> None:
    line = text.replace("\n", " ")
    assert "".join(piece.text for piece in pieces(line)) == (line if line.strip() else "")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("grün\r\nblau\rrot\n".encode(), "grün\nblau\nrot\n"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("sechzehn".encode("utf-16"), "sechzehn"),
        ("Köln – Nürnberg".encode("cp1252"), "Köln – Nürnberg"),
        (b"", ""),
    ],
)
def test_text_is_read_in_the_encoding_it_is_in(content: bytes, text: str) -> None:
    assert decoded(content) == text
