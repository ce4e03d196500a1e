"""Full-text search over tools: Okapi BM25 over names, titles and descriptions, deterministic. Runs
search rarely, so there is no inverted index: a search scans the prepared texts (10,000 tools: about
ten milliseconds). Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and
Beyond (2009), with its usual constants."""

import math
import re
import string
from collections.abc import Sequence

from domain.tools.tool import Tool

_K1 = 1.2
_B = 0.75
_NAME_WEIGHT = 3.0
_BEGINNING_WEIGHT = 0.5
"""Weight of a word that only begins with the searched one."""
_DESCRIBED = 1_000
"""Searched length of a description in characters, so that long descriptions do not match
everything."""
_MOST_MENTIONS = 3.0
"""Limit of the occurrences of a word that count in a description."""
_MAX_WORDS = 20
_IN_NAMES = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+|[0-9]+")
_SEPARATORS = str.maketrans(dict.fromkeys(string.punctuation + string.whitespace, " "))
_IGNORED = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
        "mcp",
        "me",
        "my",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "with",
        "you",
    ]
)


class ToolIndex:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tuple(tools)
        # Single spaces around each word, so that a word is found with its boundaries.
        self._names = [f" {' '.join(_IN_NAMES.findall(tool.name)).lower()} " for tool in tools]
        self._descriptions = [f" {_described(tool)[:_DESCRIBED].lower().translate(_SEPARATORS)} " for tool in tools]
        lengths = [
            _NAME_WEIGHT * len(name) + len(description)
            for name, description in zip(self._names, self._descriptions, strict=True)
        ]
        mean = sum(lengths) / max(1, len(lengths))
        self._norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]

    def search(self, query: str, limit: int) -> tuple[Tool, ...]:
        """The best matches first, equal ones by name; empty without a match."""
        scores: dict[int, float] = {}
        for word in _words(query):
            found = self._occurrences(word)
            rarity = math.log(1 + (len(self._tools) - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found.items():
                score = rarity * count * (_K1 + 1) / (count + self._norms[number])
                scores[number] = scores.get(number, 0.0) + score
        best = sorted(scores, key=lambda number: (-scores[number], self._tools[number].name))
        return tuple(self._tools[number] for number in best[:limit])

    def _occurrences(self, word: str) -> dict[int, float]:
        beginning = f" {word}"
        found: dict[int, float] = {}
        for number, (name, description) in enumerate(zip(self._names, self._descriptions, strict=True)):
            if beginning in name:
                found[number] = _NAME_WEIGHT * _count(name, word)
            if beginning in description:
                found[number] = found.get(number, 0.0) + min(_count(description, word), _MOST_MENTIONS)
        return found


def _described(tool: Tool) -> str:
    definition = None if tool.mcp is None else tool.mcp.definition
    title = None if definition is None else definition.display.get("title")
    return f"{title} {tool.description}" if isinstance(title, str) else tool.description


def _count(text: str, word: str) -> float:
    """Occurrences of the word: whole, as a plural, or (with less weight) as the beginning of
    another."""
    whole = text.count(f" {word} ") + text.count(f" {word}s ")
    return whole + _BEGINNING_WEIGHT * (text.count(f" {word}") - whole)


def _words(query: str) -> list[str]:
    """The distinct words of a query (or of a name in it, `listOpenIssues`), in lower case,
    singular."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", query).lower().translate(_SEPARATORS).split()
    singular = (
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in split
    )
    return [word for word in dict.fromkeys(singular) if word not in _IGNORED][:_MAX_WORDS]
