"""Versions of stored objects in headers: `ETag` out, `If-Match` in (RFC 9110, 8.8.3 and 13.1.1)."""

import re
from typing import Annotated

from litestar.params import HeaderParameter

from domain.errors import Violation, invalid

_ETAG = re.compile(r'(?:W/)?"(\d{1,9})"|(\d{1,9})')

IfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match",
        description='The version last read, from its `ETag`: `"3"`. Another version is answered with 412.',
    ),
]


def etag(version: int) -> dict[str, str]:
    return {"ETag": f'"{version}"'}


def expected_version(if_match: str | None) -> int | None:
    """The version that the client requires, or None. Raises INVALID `if_match_invalid`."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _ETAG.fullmatch(if_match.strip())
    if match is None:
        raise invalid(
            "if_match_invalid",
            "The If-Match header is not one of our ETags.",
            Violation(path="If-Match", message='must be a version in quotes, such as "3", or *'),
        )
    return int(match[1] or match[2])
