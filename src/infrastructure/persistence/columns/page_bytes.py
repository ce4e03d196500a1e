"""The bound of a page in bytes: rows with images and files may be large."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Integer
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

PAGE_BYTES = 16 * 1024 * 1024
"""Of the stored texts of a page. A page has one row at least."""


class StoredSize(FunctionElement[int]):
    """Size of a text column; PostgreSQL knows it without reading the text."""

    type = Integer()
    inherit_cache = True


@compiles(StoredSize)
def _octet_length(element: StoredSize, compiler: Any, **options: Any) -> str:
    return f"octet_length({compiler.process(element.clauses, **options)})"


@compiles(StoredSize, "sqlite")
def _length(element: StoredSize, compiler: Any, **options: Any) -> str:
    return f"length({compiler.process(element.clauses, **options)})"


def fitting(sizes: Iterable[int]) -> int:
    """How many of the first rows fit in a page, at least one. Sizes after these are not read."""
    count = total = 0
    for size in sizes:
        total += size
        if total > PAGE_BYTES:
            break
        count += 1
    return max(count, 1)
