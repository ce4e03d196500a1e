"""Finds canary tokens in texts and JSON values, and removes them.

- Everything but letters and digits may separate the characters of a token or of its encoding.
- Escapes are decoded before the search, up to twice (`canary_views`).
- The encodings that are searched for are those of `canary_forms`.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from domain.json_value import JsonValue
from domain.policy.canary import mark
from domain.policy.canary_forms import (
    MIN_FORM,
    Form,
    characters,
    folded,
    forms_of_letters,
    forms_with_punctuation,
)
from domain.policy.canary_forms import letters as letters_of
from domain.policy.canary_views import View, spellings, unfinished_escape, views

_BASE64_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_CLEANED_DEPTH = 100
"""The nesting depth up to which single texts of a value are cleaned."""
_ROUNDS = 4
"""A mark can form a new token with its neighbours. After this many rounds the whole text becomes
the mark."""
_LONG_FORM = 16
_SAMPLE = 8
_STRIDE = _LONG_FORM - _SAMPLE + 1
"""A text is compared with long forms by samples of eight characters at each ninth place: each long
form contains one."""
_PREFIX = 3
_SMALL_HELD = 2_000
_HELD_SHARE = 2
"""A longer held text is scanned again when it has grown by half, so that the cost of a stream
grows with its length only."""


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


class _Forms:
    """An index of forms: by samples for the search in a text, in order for the search at its
    end."""

    def __init__(self, forms: Iterator[Form]) -> None:
        by_text = {form.text: form for form in forms if len(form.text) >= MIN_FORM}
        samples: dict[str, list[tuple[int, Form]]] = {}
        for text, form in by_text.items():
            for offset in range(_STRIDE if len(text) >= _LONG_FORM else 0):
                samples.setdefault(text[offset : offset + _SAMPLE], []).append((offset, form))
        self._short = [form for text, form in by_text.items() if len(text) < _LONG_FORM]
        self._samples = samples
        self._ordered = sorted(by_text)
        self._prefixes = frozenset(text[:_PREFIX] for text in by_text)
        self._longest = max(map(len, by_text), default=0)

    def found_in(self, text: str) -> bool:
        if any(form.text in text for form in self._short):
            return True
        samples = [text[place : place + _SAMPLE] for place in range(0, len(text) - _SAMPLE + 1, _STRIDE)]
        return not self._samples.keys().isdisjoint(samples) and next(self.places(text), None) is not None

    def places(self, text: str) -> Iterator[tuple[int, Form]]:
        """Each form in the text, with its place."""
        for form in self._short:
            place = text.find(form.text)
            while place >= 0:
                yield place, form
                place = text.find(form.text, place + 1)
        for place in range(0, len(text) - _SAMPLE + 1, _STRIDE):
            for offset, form in self._samples.get(text[place : place + _SAMPLE], ()):
                if place >= offset and text.startswith(form.text, place - offset):
                    yield place - offset, form

    def beginning(self, text: str) -> int | None:
        """The start of the longest end of the text that begins a form."""
        for place in range(max(0, len(text) - self._longest + 1), len(text)):
            if len(text) - place < _PREFIX or text[place : place + _PREFIX] in self._prefixes:
                end = text[place:]
                near = bisect_left(self._ordered, end)
                if near < len(self._ordered) and self._ordered[near].startswith(end):
                    return place
        return None


class CanaryScanner:
    """Searches for the tokens of one run. Build it once: a token has some hundred forms.

    A token with fewer than eight letters and digits is not searched for.
    """

    def __init__(self, tokens: Mapping[str, str]) -> None:
        watched = [(token_id, token) for token_id, token in tokens.items() if len(letters_of(token)) >= MIN_FORM]
        # A token that contains another one replaces it.
        watched.sort(key=lambda entry: len(entry[1]))
        self._letters = _Forms(form for entry in watched for form in forms_of_letters(*entry))
        self._characters = _Forms(form for entry in watched for form in forms_with_punctuation(*entry))

    def found_in(self, text: str) -> bool:
        return any(
            self._letters.found_in(letters_of(spelling)) or self._characters.found_in(characters(spelling))
            for spelling in spellings(text)
        )

    def clean(self, text: str) -> CleanText:
        """The text with `[canary:ID]` in place of each token."""
        found: str | None = None
        for _ in range(_ROUNDS):
            if not self.found_in(text):
                return CleanText(text, found)
            hits = self._hits(text)
            found = found or hits[0].token_id
            pieces: list[str] = []
            place = 0
            for hit in hits:
                pieces += [text[place : hit.start], mark(hit.token_id)]
                place = hit.end
            text = "".join((*pieces, text[place:]))
        assert found is not None
        return CleanText(mark(found), found) if self.found_in(text) else CleanText(text, found)

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
        held = len(text)
        for view in views(text):
            cut = unfinished_escape(view.text)
            if cut < len(view.text):
                held = min(held, view.starts[cut], self._held_in(view.until(cut), held))
            held = min(held, self._held_in(view, held))
        return held

    def _held_in(self, view: View, otherwise: int) -> int:
        held = otherwise
        for forms, (text, places) in ((self._letters, _letters(view)), (self._characters, _characters(view))):
            place = forms.beginning(text)
            if place is not None:
                held = min(held, view.starts[places[place]])
        return held

    def first_start(self, text: str) -> _Hit:
        """The first token of a text that contains one."""
        return self._hits(text)[0]

    def _hits(self, text: str) -> list[_Hit]:
        """All places in order; overlapping places are merged."""
        hits: list[_Hit] = []
        for view in views(text):
            for forms, (searched, places) in ((self._letters, _letters(view)), (self._characters, _characters(view))):
                for place, form in forms.places(searched):
                    start, end = _widened(view.text, form, places[place], places[place + len(form.text) - 1])
                    hits.append(_Hit(view.starts[start], view.ends[end], form.token_id))
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
        self._pieces: list[str] = []
        self._unread = 0

    def feed(self, piece: str) -> CleanText:
        """The text that is safe to show after this piece. If `found`, the text ends there and only
        the mark may follow."""
        self._pieces.append(piece)
        self._unread += len(piece)
        if len(self._held) > _SMALL_HELD and self._unread * _HELD_SHARE < len(self._held):
            return CleanText("", None)
        text = self._taken()
        if self._scanner.found_in(text):
            hit = self._scanner.first_start(text)
            return CleanText(text[: min(hit.start, self._scanner.held_from(text))], hit.token_id)
        cut = self._scanner.held_from(text)
        self._held = text[cut:]
        return CleanText(text[:cut], None)

    def finish(self) -> str:
        """The text still held back, without tokens, now that the stream has ended."""
        return self._scanner.clean(self._taken()).text

    def _taken(self) -> str:
        text = "".join((self._held, *self._pieces))
        self._held, self._pieces, self._unread = "", [], 0
        return text


def _letters(view: View) -> tuple[str, list[int]]:
    """The letters of a view, and the place of each one."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(view.text):
        for same in folded(char):
            if same.isalnum():
                chars.append(same)
                places.append(place)
    return "".join(chars), places


def _characters(view: View) -> tuple[str, list[int]]:
    """The characters of a view without white space, and the place of each one."""
    places = [place for place, char in enumerate(view.text) if not char.isspace()]
    return "".join(view.text[place] for place in places), places


def _widened(text: str, form: Form, first: int, last: int) -> tuple[int, int]:
    """The first and last character, extended by the neighbouring base64 characters that carry bits
    of the token, and by its padding."""
    if form.before and first > 0 and text[first - 1] in _BASE64_CHARS:
        first -= 1
    if form.after and last + 1 < len(text) and text[last + 1] in _BASE64_CHARS:
        last += 1
        while last + 1 < len(text) and text[last + 1] == "=":
            last += 1
    return first, last


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
