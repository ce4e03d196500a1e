"""Index words of sources. They are the same on every database, because both indexing and search use
this module.

- Letters are folded to lower case without accents.
- Plural endings are removed (the S-stemmer: Harman, How Effective is Suffixing?, 1991).
- Ideographs and kana, which are written without spaces, are single words.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

_MAX_WORD = 64
_MAX_QUERY_WORDS = 20
_MAX_QUERY_CHARACTERS = 2_000
PREFIX_FROM = 4
"""A query word of at least this length also matches longer words that begin with it."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
_IGNORED = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "not",
        "our",
        "so",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """The distinct words of a query, in their order."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, question: str) -> "SearchQuery":
        """From any text of a model; operators and quotes have no meaning. Stop words are dropped,
        unless there are no others."""
        words = list(dict.fromkeys(words_of(question[:_MAX_QUERY_CHARACTERS])))
        telling = [word for word in words if word not in _IGNORED]
        return cls(words=tuple((telling or words)[:_MAX_QUERY_WORDS]))


def words_of(text: str) -> list[str]:
    folded = text.lower() if text.isascii() else _folded(text)
    return [_singular(word)[:_MAX_WORD] for word in _WORD.findall(folded)]


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    return _unspaced().sub(r" \1 ", bare)


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(_UNSPACED)


def _singular(word: str) -> str:
    if len(word) < PREFIX_FROM or word[-1] != "s":
        return word
    if word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] not in "aeo":
        return word[:-1]
    return word if word[-2] in "us" else word[:-1]
