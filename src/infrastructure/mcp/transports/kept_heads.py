"""Heads of POSTs, made once for the same headers: those of calls of one tool mostly are."""

from collections.abc import Mapping

from infrastructure.http.kept_connection import Origin
from infrastructure.http.kept_http import head_of

MAX_HEADS = 256
MAX_HEAD_BYTES = 4 * 1024
"""Of a head that is kept. Some headers repeat arguments of a call, which may be long and seldom come again."""


class KeptHeads:
    """Heads with `fixed` headers and those of each request."""

    def __init__(self, fixed: Mapping[str, str]) -> None:
        self._fixed = fixed
        self._heads: dict[tuple[tuple[str, str], ...], bytes] = {}

    @property
    def kept(self) -> int:
        """How many are kept."""
        return len(self._heads)

    def of(self, origin: Origin, target: str, headers: Mapping[str, str]) -> bytes:
        """The head of a POST, as `head_of` has it. Raises ValueError."""
        key = ((target, origin.authority), *headers.items())
        head = self._heads.get(key)
        if head is None:
            head = head_of(origin, target, {**self._fixed, **headers})
            if len(head) <= MAX_HEAD_BYTES:
                if len(self._heads) >= MAX_HEADS:
                    self._heads.clear()
                self._heads[key] = head
        return head
