"""Characters that people do not see and models read: Unicode tags, zero-width and bidirectional
controls, fillers, runs of variation selectors."""

import json
import re
from functools import cache

_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_HIDDEN = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
    # Emoji and some scripts need a joiner or a selector: a single one, after a character that is
    # not ASCII (or a key: 1️⃣).
    f"|[{_JOINERS}]{{2,}}|(?<![\x80-\U0010ffff])[{_JOINERS}]|[{_JOINERS}](?![\x80-\U0010ffff])"
    f"|[{_SELECTORS}]{{2,}}|(?<![0-9#*\x80-\U0010ffff])[{_SELECTORS}]"
)


def hides_text(text: str) -> bool:
    """Whether the text has characters that people do not see, beyond what emoji and scripts
    need."""
    return not text.isascii() and _hidden().search(text) is not None


def revealed(text: str) -> str:
    """The text for people, with hidden characters as `\\u202e` or `\\U000e0041`."""
    return text if text.isascii() else _hidden().sub(lambda found: "".join(map(escaped, found[0])), text)


def revealed_json(document: str) -> str:
    """A JSON text for people, with hidden characters as escapes of JSON. Its value stays the
    same."""
    return document if document.isascii() else _hidden().sub(lambda found: json.dumps(found[0])[1:-1], document)


def escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(_HIDDEN)
