"""Finds canary tokens in texts and JSON values: plain, hex, percent-encoded, base64 in its three
alignments, case folded.

Encodings are searched for the token as it is and in lower and upper case. URL and JSON escapes are
decoded before the search, and line breaks are ignored, because encoders wrap lines.
"""

import base64
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.json_value import JsonValue
from domain.policy.canary import MIN_LENGTH, mark
from domain.policy.canary_views import folded, spellings, unfinished_escape, views

_BASE64_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+/-_")
_WINDOW_FACTOR = 8
"""Of a streamed text, at most this many times the longest form is held back. An escape takes up to
six characters for one."""
_CLEANED_DEPTH = 100
"""The nesting depth up to which single texts of a value are cleaned."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A searched spelling, case folded. `before`, `after`: the token shares a base64 character with
    its neighbour there."""

    text: str
    token_id: str
    before: bool = False
    after: bool = False


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    token_id: str


@dataclass(frozen=True, slots=True)
class CleanText:
    """A text without tokens; `found` is the id of its first token, None if it had none."""

    text: str
    found: str | None


@dataclass(frozen=True, slots=True)
class CleanJson:
    """A JSON value without tokens; `found` is the id of its first token, None if it had none."""

    value: JsonValue
    found: str | None


class CanaryScanner:
    """Searches for the tokens of one run. Build it once; a search costs a few substring searches
    per token.

    A token shorter than MIN_LENGTH is not searched for: its spellings are empty, or occur in the
    mark that replaces it.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        watched = {token_id: token for token_id, token in tokens.items() if len(token) >= MIN_LENGTH}
        families = [{form.text: form for form in _forms(token_id, token)} for token_id, token in watched.items()]
        forms = {text: form for family in families for text, form in family.items()}
        self._forms = tuple(forms.values())
        self._texts = sorted(forms)
        # A form that contains another form of its token is found with it.
        looked_for = (
            text for family in families for text in family if not any(o != text and o in text for o in family)
        )
        self._looked_for = tuple(dict.fromkeys(looked_for))
        self._first_chars = frozenset(text[0] for text in self._texts)
        self._longest = max(map(len, self._texts), default=0)
        self._plus_is_space = any(" " in token for token in tokens.values())

    def found_in(self, text: str) -> bool:
        return any(
            form in spelling
            for spelling in spellings(text, plus_is_space=self._plus_is_space)
            for form in self._looked_for
        )

    def clean(self, text: str) -> CleanText:
        """The text with `[canary:ID]` in place of each token."""
        found: str | None = None
        while self.found_in(text):
            hits = self._hits(text)
            found = found or hits[0].token_id
            pieces: list[str] = []
            place = 0
            for hit in hits:
                pieces += [text[place : hit.start], mark(hit.token_id)]
                place = hit.end
            text = "".join((*pieces, text[place:]))
        return CleanText(text, found)

    def clean_json(self, value: JsonValue) -> CleanJson:
        """The value with `[canary:ID]` in place of each token, in strings, keys and numbers. A part
        nested more than a hundred levels deep is replaced as a whole if it contains a token."""
        found = self._first_in(value)
        return CleanJson(value, None) if found is None else CleanJson(self._cleaned(value, 0), found)

    def _first_in(self, value: JsonValue) -> str | None:
        """The id of the first token in a value of any depth."""
        texts = (text for text in _texts_in(value) if self.found_in(text))
        first = next(texts, None)
        return None if first is None else self.clean(first).found

    def _cleaned(self, value: JsonValue, depth: int) -> JsonValue:
        match value:
            case str():
                return self.clean(value).text
            case bool() | None:
                return value
            case int() | float():
                text = self.clean(str(value))
                return value if text.found is None else text.text
            case _ if depth == _CLEANED_DEPTH:
                found = self._first_in(value)
                return value if found is None else mark(found)
            case list():
                return [self._cleaned(item, depth + 1) for item in value]
            case dict():
                return {self.clean(key).text: self._cleaned(item, depth + 1) for key, item in value.items()}

    def held_from(self, text: str) -> int:
        """The start of the longest end of the text that could begin a token; the text's length if
        there is none."""
        began = max(0, len(text) - _WINDOW_FACTOR * self._longest)
        tail = text[began:]
        held = len(tail)
        for view in views(tail, plus_is_space=self._plus_is_space):
            held = min(held, *self._beginnings(view.text, view.starts), held)
        if "%" in tail or "\\" in tail:
            cut = unfinished_escape(tail)
            held = min(held, cut)
            for view in views(tail[:cut], plus_is_space=self._plus_is_space):
                held = min(held, *self._beginnings(view.text, view.starts), held)
        return began + held

    def _beginnings(self, text: str, starts: list[int]) -> Iterator[int]:
        """For the original text, the start of the longest end of a spelling that begins a form."""
        for place in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[place] in self._first_chars:
                end = text[place:]
                near = bisect_left(self._texts, end)
                if near < len(self._texts) and self._texts[near].startswith(end):
                    yield starts[place]
                    return

    def first_start(self, text: str) -> _Hit:
        """The first token of a text that contains one."""
        return self._hits(text)[0]

    def _hits(self, text: str) -> list[_Hit]:
        """All places in order; overlapping places are merged."""
        hits: list[_Hit] = []
        for view in views(text, plus_is_space=self._plus_is_space):
            for form in self._forms:
                place = view.text.find(form.text)
                while place >= 0:
                    start, end = _widened(view.text, form, place)
                    hits.append(_Hit(view.starts[start], view.ends[end - 1], form.token_id))
                    place = view.text.find(form.text, place + 1)
        hits.sort(key=lambda hit: (hit.start, -hit.end))
        merged: list[_Hit] = []
        for hit in hits:
            if merged and hit.start < merged[-1].end:
                last = merged[-1]
                merged[-1] = _Hit(last.start, max(last.end, hit.end), last.token_id)
            else:
                merged.append(hit)
        return merged


class CanaryStream:
    """Filters a streamed text: an end that could begin a token is held back until more text
    decides."""

    def __init__(self, scanner: CanaryScanner) -> None:
        self._scanner = scanner
        self._held = ""

    def feed(self, piece: str) -> CleanText:
        """The text that is safe to show after this piece. If `found`, the text ends there and only
        the mark may follow."""
        text = self._held + piece
        if self._scanner.found_in(text):
            hit = self._scanner.first_start(text)
            self._held = ""
            return CleanText(text[: min(hit.start, self._scanner.held_from(text))], hit.token_id)
        cut = self._scanner.held_from(text)
        self._held = text[cut:]
        return CleanText(text[:cut], None)

    def finish(self) -> str:
        """The text still held back, now that the stream has ended."""
        rest, self._held = self._held, ""
        return rest


def _forms(token_id: str, token: str) -> Iterator[_Form]:
    yield _Form(folded(token), token_id)
    for variant in dict.fromkeys((token, token.casefold(), token.lower(), token.upper())):
        raw = variant.encode("utf-8", "surrogatepass")
        yield _Form(raw.hex(), token_id)
        for offset in range(3):
            yield from _base64_forms(token_id, raw, offset)


def _base64_forms(token_id: str, raw: bytes, offset: int) -> Iterator[_Form]:
    """The base64 characters that the token alone determines when it begins `offset` bytes after a
    group of three."""
    first = -(-offset * 8 // 6)
    last = (offset + len(raw)) * 8 // 6
    padded = b"\0" * offset + raw + b"\0" * (-(offset + len(raw)) % 3)
    form = _Form("", token_id, before=offset > 0, after=(offset + len(raw)) % 3 > 0)
    for encoded in (base64.b64encode(padded), base64.urlsafe_b64encode(padded)):
        text = folded(encoded.decode()[first:last])
        yield _Form(text, token_id, form.before, form.after)


def _widened(text: str, form: _Form, place: int) -> tuple[int, int]:
    """The place, extended by the neighbouring base64 characters that carry bits of the token, and
    by its padding."""
    start, end = place, place + len(form.text)
    if form.before and start > 0 and text[start - 1] in _BASE64_CHARS:
        start -= 1
    if form.after and end < len(text) and text[end] in _BASE64_CHARS:
        end += 1
        while end < len(text) and text[end] == "=":
            end += 1
    return start, end


def _texts_in(value: JsonValue) -> Iterator[str]:
    """Strings, keys and numbers of a value, in order and without recursion: models nest arguments
    to any depth."""
    left: list[JsonValue] = [value]
    while left:
        part = left.pop()
        match part:
            case str():
                yield part
            case bool() | None:
                pass
            case int() | float():
                yield str(part)
            case list():
                left.extend(reversed(part))
            case dict():
                for key, item in reversed(part.items()):
                    left += [item, key]
