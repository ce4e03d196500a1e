"""Pages of lists with a fixed order, so that a cursor is only a position (MCP
server/utilities/pagination)."""

import base64
import binascii
from collections.abc import Sequence
from typing import TypeVar

from interfaces.gateway.messages import INVALID_PARAMS, RpcError

PAGE_SIZE = 500

_Entry = TypeVar("_Entry")


def page_of(entries: Sequence[_Entry], cursor: object) -> tuple[Sequence[_Entry], str | None]:
    """The page at the cursor (the first one without a cursor), and the cursor of the next page.
    Raises RpcError."""
    start = _start_of(cursor, len(entries))
    end = start + PAGE_SIZE
    return entries[start:end], _cursor(end) if end < len(entries) else None


def _cursor(start: int) -> str:
    return base64.urlsafe_b64encode(str(start).encode()).decode()


def _start_of(cursor: object, count: int) -> int:
    if cursor is None:
        return 0
    try:
        start = int(base64.b64decode(str(cursor), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error) as exc:
        raise RpcError(INVALID_PARAMS, "params.cursor is not a cursor of this list.") from exc
    if not 0 < start < count:
        raise RpcError(INVALID_PARAMS, "params.cursor is not a cursor of this list.")
    return start
