"""Ranks search results with Okapi BM25 over the found chunks, identically on every database.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), with
its usual constants.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from domain.ids import SourceId
from domain.sources.source import SourceChunk
from domain.sources.words import PREFIX_FROM, SearchQuery, words_of

_K1 = 1.2
_B = 0.75
_BEGINNING_WEIGHT = 0.5
"""The weight of a word that only begins with a query word."""
_TOGETHER_BONUS = 1.0
"""Bonus for query words that are adjacent in the text as in the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChunk:
    """A chunk that contains at least one word of the query."""

    source_id: SourceId
    source_name: str
    position: int
    chunk: SourceChunk


def ranked(found: Sequence[FoundChunk], query: SearchQuery, limit: int) -> tuple[FoundChunk, ...]:
    """The best chunks, best first; equal scores are ordered by name, source and position."""
    texts = [words_of(piece.chunk.found_by) for piece in found]
    mean = sum(map(len, texts)) / max(1, len(texts))
    counts = [Counter(words) for words in texts]
    mentions = {word: [_mentions(count, word) for count in counts] for word in query.words}
    scores = [0.0] * len(found)
    for of_word in mentions.values():
        containing = sum(1 for number in of_word if number)
        rarity = math.log(1 + (len(found) - containing + 0.5) / (containing + 0.5))
        for index, number in enumerate(of_word):
            if number:
                norm = _K1 * (1 - _B + _B * len(texts[index]) / mean)
                scores[index] += rarity * number * (_K1 + 1) / (number + norm)
    for index, words in enumerate(texts):
        scores[index] += _TOGETHER_BONUS * _pairs_together(words, query)
    order = sorted(range(len(found)), key=lambda index: (-scores[index], *_place(found[index])))
    return tuple(found[index] for index in order[:limit])


def _place(found: FoundChunk) -> tuple[str, str, int]:
    return (found.source_name, found.source_id, found.position)


def _mentions(counts: Counter[str], word: str) -> float:
    whole = counts[word]
    if len(word) < PREFIX_FROM:
        return whole
    begun = sum(number for other, number in counts.items() if other.startswith(word)) - whole
    return whole + _BEGINNING_WEIGHT * begun


def _pairs_together(words: Sequence[str], query: SearchQuery) -> int:
    wanted = set(pairwise(query.words))
    return len(wanted.intersection(pairwise(words))) if wanted else 0
