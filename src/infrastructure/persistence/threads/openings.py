"""The beginning of a thread's first message, read without the rest of the message."""

import json
import re

from sqlalchemy import ColumnElement, Text, func, select, type_coerce

from infrastructure.persistence.tables import message, thread
from infrastructure.runtime.json_text import encode

_READ = 1_000
"""Characters that are read of a message: images after its text may be large."""
_TEXT = '"type":"text","text":"'
_STRING = re.compile(r'(?:[^"\\]|\\.)*')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")

_first = (
    select(func.substr(type_coerce(message.c.content, Text), 1, _READ))
    .where(message.c.thread_id == thread.c.id, message.c.role == "user", message.c.superseded.is_(False))
    .order_by(message.c.position)
    .limit(1)
    .correlate(thread)
    .scalar_subquery()
)
opening_column = _first.label("opening")


def opening_has(search: str) -> ColumnElement[bool]:
    """Whether the beginning has the text somewhere. Upper and lower case of ASCII letters are the
    same, in PostgreSQL of all letters. Names and media types of files right after the first text
    count as part of it."""
    return func.replace(_first, _TEXT, "").icontains(encode(search)[1:-1], autoescape=True)


def opening_of(content: str | None) -> str | None:
    """The text at the beginning of a message, from the first characters of its JSON."""
    _, mark, rest = (content or "").partition(_TEXT)
    if not mark or (found := _STRING.match(rest)) is None:
        return None
    text = _CUT_ESCAPE.sub("", found[0]) if found.end() == len(rest) else found[0]
    return str(json.loads(f'"{text}"', strict=False))
