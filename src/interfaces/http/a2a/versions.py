"""The version of A2A that a request is in."""

import re

from interfaces.http.a2a.errors import unsupported_version
from interfaces.http.requests import ApiRequest

NAME = "A2A-Version"
_SUPPORTED = re.compile(r"1\.0(\.\d+)?")


def require_version(request: ApiRequest) -> None:
    """Raises INVALID `a2a_version_unsupported`. Without a version, a request is in 0.3; patch
    versions do not count."""
    version = request.headers.get(NAME) or request.query_params.get(NAME) or ""
    if _SUPPORTED.fullmatch(version) is None:
        raise unsupported_version(version)
