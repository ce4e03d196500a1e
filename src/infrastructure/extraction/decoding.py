"""Decodes bytes as browsers do: byte order mark, declared charset, charset in the page, then a
guess."""

import codecs
import re

from trafilatura.utils import detect_encoding

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the mark of UTF-16, so it is checked first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*(?:[\"']\s*)?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_PRESCANNED_BYTES = 2_048
_GUESSED_FROM_BYTES = 100_000
_LATIN = frozenset({"ascii", "iso8859-1"})


def decoded(data: bytes, charset: str | None, *, is_html: bool = False) -> str:
    """The text; never fails: undecodable bytes become U+FFFD. Valid UTF-8 wins over a wrong
    declaration."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    stated = _known(charset)
    if stated is None and is_html and (meta := _META_CHARSET.search(data, 0, _PRESCANNED_BYTES)) is not None:
        stated = _known(meta[1].decode("ascii"))
    for candidate in (stated, "utf-8") if stated is None or stated not in {"utf-8", "cp1252"} else ("utf-8", stated):
        if candidate is not None and (text := _strictly(data, candidate)) is not None:
            return text
    if stated is not None:
        return data.decode(stated, errors="replace")
    for guess in detect_encoding(data[:_GUESSED_FROM_BYTES]):
        if (known := _known(guess)) is not None and (text := _strictly(data, known)) is not None:
            return text
    return data.decode("cp1252", errors="replace")


def _known(charset: str | None) -> str | None:
    """Python's name for a charset. On the web, Latin-1 means Windows-1252 (WHATWG Encoding, section
    4.2)."""
    if charset is None:
        return None
    try:
        name = codecs.lookup(charset).name
        b"".decode(name)  # rejects codecs that are not charsets
    except (LookupError, ValueError):
        return None
    return "cp1252" if name in _LATIN else name


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, ValueError):
        return None
