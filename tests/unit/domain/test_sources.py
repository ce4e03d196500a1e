"""What a file is read as, which names it may have, and the words it is searched by."""

import pytest

from domain.errors import ServiceError
from domain.sources.source import SourceKind, kind_of, require_name
from domain.sources.words import SearchQuery, words_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    ("name", "beginning", "kind"),
    [
        ("a.txt", b"hello", SourceKind.TEXT),
        ("README.MD", b"# hello", SourceKind.MARKDOWN),
        ("a.csv", b"a;b", SourceKind.CSV),
        ("a.tsv", b"a\tb", SourceKind.CSV),
        ("a.html", b"<p>hello", SourceKind.HTML),
        ("a.pdf", b"%PDF-1.7", SourceKind.PDF),
        ("report", b"%PDF-1.7", SourceKind.PDF),
        ("a.pdf", b"no pdf at all", SourceKind.FILE),
        ("a.csv", PNG, SourceKind.FILE),
        ("a.png", PNG, SourceKind.FILE),
        ("main.py", b"import this", SourceKind.TEXT),
        ("Makefile", b"all:\n\ttrue\n", SourceKind.TEXT),
        ("utf16.txt", "hello".encode("utf-16"), SourceKind.TEXT),
        ("empty.txt", b"", SourceKind.TEXT),
        ("noise.txt", bytes(range(1, 32)) * 10, SourceKind.FILE),
    ],
)
def test_a_file_is_read_as_its_name_says_unless_its_bytes_say_otherwise(
    name: str, beginning: bytes, kind: SourceKind
) -> None:
    assert kind_of(name, beginning) is kind


@pytest.mark.parametrize("name", ["a.txt", "Übersicht (final) v2.csv", ".env", "数据.csv", "a" * 255])
def test_file_names_are_names_of_sources(name: str) -> None:
    require_name(name)


@pytest.mark.parametrize(
    "name", ["", "  ", ".", "..", "a/b", "a\\b", "../etc/passwd", "a\nb", "a\0b", "\u202egpj.exe", "\ud800", "a" * 256]
)
def test_whatever_else_is_none(name: str) -> None:
    with pytest.raises(ServiceError) as refused:
        require_name(name)
    assert refused.value.code == "source_name_invalid"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Companies' Buses, classes and gases", ["company", "buse", "classe", "and", "gase"]),
        ("status news analysis", ["status", "new", "analysi"]),
        ("Ångström naïve ﬁle ①", ["angstrom", "naive", "file", "1"]),
        ("日本語 テスト", ["日", "本", "語", "テ", "ス", "ト"]),
        ("a_b-c.d e'f", ["a", "b", "c", "d", "e", "f"]),
        ("x" * 100, ["x" * 64]),
    ],
)
def test_words_are_folded(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_folding_reaches_words_and_their_plurals_alike() -> None:
    for one, many in (
        ("company", "companies"),
        ("bus", "buses"),
        ("class", "classes"),
        ("key", "keys"),
        ("gas", "gas"),
    ):
        shorter, longer = sorted((words_of(one)[0], words_of(many)[0]), key=len)
        assert longer.startswith(shorter)


def test_a_question_is_its_telling_words_each_once() -> None:
    assert SearchQuery.of("What is the refund, the REFUND deadline?").words == ("refund", "deadline")
    assert SearchQuery.of("to be or not to be").words == ("to", "be", "or", "not")
    assert SearchQuery.of("?!").words == ()
    assert len(SearchQuery.of(" ".join(f"w{number}" for number in range(500))).words) == 20
