"""The scanner for canary tokens: every spelling, every split, and nothing else."""

import base64
import binascii
import codecs
import html
import json
import re
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.json_value import JsonValue
from domain.policy.canary_forms import MIN_FORM, letters
from domain.policy.canary_scan import CanaryScanner, CanaryStream

TOKEN = "Night-ingale/47 ß"
VISIBLE = st.characters(exclude_categories=("C", "Z"))
tokens = st.text(st.one_of(st.sampled_from("abcXYZ019-_/+ %\\"), VISIBLE), min_size=8, max_size=24).filter(
    lambda token: token.isprintable() and len(letters(token)) >= MIN_FORM
)
texts = st.text(st.sampled_from('abN iß%41\\u0"/+-=\n3F'), max_size=20)
_BROKEN_ESCAPE = re.compile(r"(?:[%=][0-9a-fA-F]?|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
cases: st.SearchStrategy[Callable[[str], str]] = st.sampled_from([str, str.lower, str.upper])


@st.composite
def spelled(draw: st.DrawFn, token: str) -> str:
    """The token in one of the watched spellings."""
    written = draw(cases)(token)
    raw = written.encode()
    kind = draw(st.sampled_from(["plain", "hex", "percent", "plus", "json", "html", "separated", "base64", "wrapped"]))
    match kind:
        case "plain":
            return "".join(draw(st.sampled_from([char, char.upper(), char.lower()])) for char in token)
        case "hex":
            return draw(cases)(raw.hex(draw(st.sampled_from(":- ")), draw(st.integers(1, 4))))
        case "html":
            return html.escape(written)
        case "separated":
            return draw(st.sampled_from(["", "-", "\n" * 300, "\u200b "])).join(written)
        case "percent":
            # No encoder leaves a % as it is: it would begin an escape that the text does not mean.
            plain = ["%25" if char == "%" else char for char in written]
            ways = zip(map(_percent, written), map(partial(quote, safe=""), written), plain, strict=True)
            return "".join(draw(st.sampled_from(each)) for each in ways)
        case "plus":
            return quote_plus(written)
        case "json":
            return json.dumps(written)[1:-1].replace("/", draw(st.sampled_from(["/", "\\/"])))
        case _:
            before, after = draw(st.binary(max_size=5)), draw(st.binary(max_size=5))
            encode = draw(st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]))
            text = encode(before + raw + after).decode()
            text = text.rstrip("=") if draw(st.booleans()) else text
            place = draw(st.integers(0, len(text)))
            return text if kind == "base64" else f"{text[:place]}\r\n{text[place:]}"


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


@st.composite
def leaks(draw: st.DrawFn) -> tuple[str, str]:
    """A token, and a text that holds it in some spelling."""
    token = draw(tokens)
    before = draw(texts)
    if _BROKEN_ESCAPE.search(before):
        before += "."  # or it would take the first characters of a partly escaped token for its own
    return token, before + draw(spelled(token)) + draw(texts)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces, some of them empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def streamed(scanner: CanaryScanner, pieces: list[str]) -> tuple[list[str], str | None]:
    """What is let through piece by piece, and what was found."""
    stream = CanaryStream(scanner)
    shown = []
    for piece in pieces:
        clean = stream.feed(piece)
        shown.append(clean.text)
        if clean.found is not None:
            return shown, clean.found
    rest, found, _ = stream.finish().partition("[canary:t]")
    return [*shown, rest], "t" if found else None


@pytest.mark.requirement("C4")
@settings(max_examples=200)
@given(st.data())
def test_every_spelling_is_found_however_the_text_is_split_and_no_beginning_of_it_is_let_through(
    data: st.DataObject,
) -> None:
    token, text = data.draw(leaks())
    scanner = CanaryScanner({"t": token})
    pieces = data.draw(cut(text)) if data.draw(st.booleans()) else list(text)
    shown, found = streamed(scanner, pieces)
    assert found == "t"
    let_through, given_so_far = "".join(shown), "".join(pieces[: len(shown)])
    assert given_so_far.startswith(let_through)
    # In base64 a token may share its first character, and four of its bits, with what came before.
    assert len(let_through.rstrip("\r\n")) <= scanner.clean(given_so_far).text.index("[canary:t]") + 1, (
        "a beginning of it is out"
    )


@settings(max_examples=100)
@given(st.data())
def test_text_without_a_token_comes_through_whole_and_in_order(data: st.DataObject) -> None:
    token = data.draw(tokens)
    scanner = CanaryScanner({"t": token})
    near = data.draw(st.integers(0, len(token)))
    text = data.draw(texts) + token[:near] + data.draw(texts)
    if scanner.found_in(text):
        return
    shown, found = streamed(scanner, data.draw(cut(text)))
    assert found is None
    assert "".join(shown) == text
    assert scanner.clean(text).text == text


@pytest.mark.requirement("C4")
@settings(max_examples=100)
@given(leaks())
@example(("aaaaaaaa", "aaaaaaaaaaaa"))
@example(("00000000+ ", "00000000%2B+"))
@example(("0000000\\b", "%30%30%30%30%30%30%30\\b"))
@example(("00000/00%41", "00000\\/00%41"))
def test_a_cleaned_text_holds_no_token_and_says_where_it_stood(leak: tuple[str, str]) -> None:
    token, text = leak
    scanner = CanaryScanner({"t": token})
    clean = scanner.clean(text)
    assert clean.found == "t"
    assert "[canary:t]" in clean.text
    assert not scanner.found_in(clean.text)


@pytest.mark.requirement("C4")
@given(leaks())
def test_json_is_searched_through_strings_and_keys(leak: tuple[str, str]) -> None:
    token, text = leak
    scanner = CanaryScanner({"t": token})
    values: tuple[JsonValue, ...] = ([{"a": [1, None, text]}], {"deep": {text: True}})
    for value in values:
        clean = scanner.clean_json(value)
        assert clean.found == "t"
        assert scanner.clean_json(clean.value).found is None


def test_a_number_that_is_a_token_is_found() -> None:
    assert CanaryScanner({"t": "4471000123"}).clean_json({"account": 4471000123}).value == {"account": "[canary:t]"}


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("depth", [1, 99, 100, 101, 5_000])
def test_a_token_is_found_however_deep_it_is_nested(depth: int) -> None:
    scanner = CanaryScanner({"t": "nightingale"})
    for innermost in ("nightingale", {"nightingale": 1}, "[canary:u]"):
        value: JsonValue = innermost  # type: ignore[assignment]  # JSON of two kinds
        for level in range(depth):
            value = {"beside": level, "in": value} if level % 2 else [value]
        clean = scanner.clean_json(value)
        assert clean.found == (None if innermost == "[canary:u]" else "t")
        assert scanner.clean_json(clean.value).found is None
        assert (clean.value is value) is (clean.found is None)


def test_base64_of_a_token_leaves_none_of_its_bits_behind() -> None:
    scanner = CanaryScanner({"t": TOKEN})
    for offset in range(3):
        encoded = base64.b64encode(b"x" * (offset + 3) + TOKEN.encode()).decode()
        untouched = 4 * ((offset + 3) // 3)
        assert scanner.clean(f"see {encoded}!").text == f"see {encoded[: untouched + offset]}[canary:t]!"


SPOKEN = "Night-ingale-47"
ENCODINGS: dict[str, Callable[[str], str]] = {
    "base32": lambda text: base64.b32encode(b"so " + text.encode()).decode(),
    "base32 in lower case, with separators": lambda text: "-".join(base64.b32encode(text.encode()).decode().lower()),
    "base85": lambda text: base64.b85encode(b"12345" + text.encode()).decode(),
    "ascii85": lambda text: base64.a85encode(b"1" + text.encode(), wrapcol=11).decode(),
    "uuencode": lambda text: binascii.b2a_uu(b"12" + text.encode()).decode(),
    "quoted-printable": lambda text: "".join(f"={byte:02X}" if byte % 2 else chr(byte) for byte in text.encode()),
    "hex with separators": lambda text: text.encode().hex(":"),
    "0x": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "hex of UTF-16": lambda text: text.encode("utf-16-be").hex(),
    "base64 with separators": lambda text: " ".join(base64.b64encode(text.encode()).decode()),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "decimal": lambda text: json.dumps(list(text.encode())),
    "octal": lambda text: " ".join(f"{byte:03o}" for byte in text.encode()),
    "binary": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "octal without zeros": lambda text: " ".join(f"{byte:o}" for byte in text.encode()),
    "backwards": lambda text: text[::-1],
    "ROT13": lambda text: codecs.encode(text, "rot13"),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) for c in text),
    "mathematical": lambda text: "".join(chr(0x1D5BA + ord(c) - ord("a")) if c.islower() else c for c in text),
    "tags": lambda text: "".join(chr(0xE0000 + ord(c)) for c in text),
    "escapes of 32 bits": lambda text: "".join(f"\\U{ord(c):08x}" if ord(c) % 3 else c for c in text),
    "percent and u": lambda text: "".join(f"%u{ord(c):04x}" if ord(c) % 3 else c for c in text),
    "percent of percent and u": lambda text: "".join(f"%25u{ord(c):04x}" for c in text),
    "octal escapes": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "escapes of bytes": lambda text: "".join(f"\\x{byte:02x}" if byte % 3 else chr(byte) for byte in text.encode()),
    "escapes of code points": lambda text: "".join(f"\\u{{{ord(c):x}}}" if ord(c) % 3 else c for c in text),
    "decimal entities": lambda text: "".join(f"&#{ord(c)};" if ord(c) % 3 else c for c in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(c):X};" for c in text),
    "named entities": lambda text: text.replace("-", "&hyphen;"),
    "CSS": lambda text: "".join(f"\\{ord(c):x} " if ord(c) % 2 else c for c in text),
    "base64 of base64": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 of hex": lambda text: base64.b64encode(text.encode().hex().encode()).decode(),
    "hex of base64": lambda text: base64.b64encode(b"1" + text.encode()).hex(" "),
    "base32 of base64": lambda text: base64.b32encode(base64.b64encode(text.encode())).decode(),
    "percent of percent": lambda text: quote("".join(f"%{byte:02x}" for byte in text.encode())),
    "JSON in JSON": lambda text: json.dumps("".join(f"\\u{ord(c):04x}" for c in text)),
    "percent of base64": lambda text: "".join(f"%{b:02x}" for b in base64.b64encode(text.encode())),
    "entities of percent": lambda text: "".join(f"&#37;{byte:02x}" for byte in text.encode()),
    "a letter a line": ("\n" * 3_000).join,
    "base64 with 3,000 line breaks": lambda text: ("\n" * 3_000).join(base64.b64encode(text.encode()).decode()),
}


INNER: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "escapes of bytes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "percent in lower case": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "decimal entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(c):x};" for c in text),
    "numbers": lambda text: json.dumps(list(text.encode())),
    "numbers with commas": lambda text: ",".join(map(str, text.encode())),
    "numbers with spaces": lambda text: " ".join(map(str, text.encode())),
}
OUTER: dict[str, Callable[[bytes], str]] = {
    "hex": bytes.hex,
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64, shifted": lambda raw: base64.urlsafe_b64encode(b"x" + raw).decode(),
    "base32": lambda raw: base64.b32encode(b"so " + raw).decode(),
}


@pytest.mark.requirement("C4", "S6")
@pytest.mark.parametrize("written", [SPOKEN, SPOKEN.lower(), SPOKEN.upper()])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_token_is_found_in_each_encoding_and_none_of_it_is_let_through(encoding: str, written: str) -> None:
    assert_nothing_passes(f"See: {ENCODINGS[encoding](written)}")


@pytest.mark.requirement("C4", "S6")
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_a_token_in_escapes_or_numbers_is_found_inside_another_encoding(inner: str, outer: str) -> None:
    assert_nothing_passes(f"See: {OUTER[outer](INNER[inner](SPOKEN).encode())}")


def assert_nothing_passes(text: str) -> None:
    """No part of the token in the text passes, at once or streamed."""
    scanner = CanaryScanner({"t": SPOKEN})
    clean = scanner.clean(text + " .")
    assert clean.found == "t"
    assert not scanner.found_in(clean.text)
    shown, found = streamed(scanner, [text[place : place + 7] for place in range(0, len(text), 7)])
    assert found == "t"
    # A few characters may be shared with what came before: a prefix of the encoding, or its length.
    assert len("".join(shown).rstrip()) <= clean.text.index("[canary:t]") + 2


@pytest.mark.requirement("C4", "S6")
def test_what_separates_the_characters_of_a_token_is_held_back_whatever_its_length() -> None:
    stream = CanaryStream(CanaryScanner({"t": "nightingale"}))
    assert stream.feed("nightin").text == ""
    assert all(stream.feed("\n" * 500).text == "" for _ in range(40))
    assert stream.finish() == "nightin" + "\n" * 20_000


@pytest.mark.requirement("C4", "S6")
def test_a_token_in_text_that_waits_for_its_scan_is_not_let_through_at_the_end() -> None:
    stream = CanaryStream(CanaryScanner({"t": "nightingale"}))
    assert stream.feed("nightin" + "\n" * 20_000).text == ""
    assert stream.feed("gale").text == ""
    assert stream.finish() == "[canary:t]"


def test_a_mark_that_forms_a_token_with_its_neighbours_ends_the_search() -> None:
    scanner = CanaryScanner({"x1": "nightingale", "b": "seecanaryx1"})
    clean = scanner.clean("see nightingale")
    assert clean.found == "x1"
    assert not scanner.found_in(clean.text)


def test_a_token_that_holds_another_one_is_found_whole() -> None:
    scanner = CanaryScanner({"short": "nightingale", "long": "the nightingale sings"})
    assert scanner.clean("Hear: The Nightingale Sings.").text == "Hear: [canary:long]."


@pytest.mark.parametrize(
    "text",
    [
        "Night-ingale/47",
        "Night-ingale/4 7",
        "Nightingale 48 ß",
        base64.b64encode(b"Night-ingale/48 and so on").decode(),
        "night%2Dingale%2F48",
    ],
)
def test_what_only_resembles_a_token_is_let_through(text: str) -> None:
    assert not CanaryScanner({"t": TOKEN}).found_in(text)


def test_the_first_of_several_tokens_is_named() -> None:
    scanner = CanaryScanner({"a": "albatross-1", "b": "bluethroat-2"})
    assert scanner.clean("bluethroat-2, then albatross-1").found == "b"


def test_what_is_held_back_is_no_longer_than_a_spelling_of_a_token() -> None:
    scanner = CanaryScanner({"t": "nightingale"})
    stream = CanaryStream(scanner)
    let_through = sum(len(stream.feed("nightin").text) for _ in range(1_000))
    assert 7 * 1_000 - let_through <= 22


@pytest.mark.parametrize("token", ["", "\0", "x", "xy"])
def test_a_token_too_short_for_some_spelling_breaks_no_scan(token: str) -> None:
    scanner = CanaryScanner({"short": token, "vault": TOKEN})
    assert scanner.clean("Say ß").text == "Say ß"
    assert scanner.clean(TOKEN).found == "vault"
    assert CanaryStream(CanaryScanner({"short": token})).feed("ß").text == "ß"
