"""The process of one keyless search: ddgs requests DuckDuckGo's page for browsers without scripts,
and parses it.

Started as `python -I -m dragoman.run_module
infrastructure.native_tools.search.ddgs_process`. Above: `duckduckgo.py`. The library blocks, has
its own HTTP client and parses HTML; therefore it runs outside the service.
It reads `{"query", "base_url", "timeout_s", "proxy"}` on stdin and writes
`{"results": [[title, url, snippet]]}` or `{"fault", "detail"}` on stdout. An alarm ends it if it
hangs.
"""

import json
import re
import signal
import sys

from ddgs.engines.duckduckgo import Duckduckgo
from ddgs.exceptions import DDGSException, TimeoutException
from ddgs.results import TextResult

_MAX_RESULTS = 20
_CHALLENGES = ("anomaly-modal", "anomaly.js")
"""Marks of the page that asks for a human check after too many searches from this address."""
_BY_WAY = re.compile(r"(?:https?:)?//(?:[\w.-]+\.)?duckduckgo\.com/l/\?uddg=(.+?)(?:&rut=\w*)?")
_TOO_MANY = frozenset({202, 403, 418, 429})


class RefusedError(Exception):
    """DuckDuckGo answered without results."""

    def __init__(self, fault: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = detail


class DuckduckgoAt(Duckduckgo):
    """The library's engine at another address. The original treats every status other than 200 as
    "nothing found"."""

    def __init__(self, base_url: str, timeout_s: int, proxy: str | None) -> None:
        super().__init__(timeout=timeout_s, proxy=proxy)
        self.search_url = f"{base_url}/html/"

    def request(self, *args: object, **kwargs: object) -> str:
        response = self.http_client.request(*args, **kwargs)
        if response.status_code in _TOO_MANY:
            raise RefusedError("rate_limited", f"HTTP {response.status_code}")
        if response.status_code != 200:
            raise RefusedError("unavailable", f"HTTP {response.status_code}")
        text = str(response.text)
        if any(mark in text for mark in _CHALLENGES):
            raise RefusedError("rate_limited", "challenged")
        return text


def found(query: str, base_url: str, timeout_s: int, proxy: str | None) -> dict[str, object]:
    try:
        results = DuckduckgoAt(base_url, timeout_s, proxy).search(query)
    except RefusedError as refused:
        return {"fault": refused.fault, "detail": refused.detail}
    except TimeoutException:
        return {"fault": "timeout", "detail": ""}
    except DDGSException:
        return {"fault": "unavailable", "detail": "no HTTP answer"}
    return {"results": [_fields(result) for result in (results or [])[:_MAX_RESULTS]]}


def _fields(result: TextResult) -> tuple[str, str, str]:
    return result.title, _target(result.href), result.body


def _target(href: str) -> str:
    """The target of a result: DuckDuckGo may link through itself. The library has already decoded
    the link."""
    by_way = _BY_WAY.fullmatch(href)
    return href if by_way is None else by_way[1]


def main() -> int:
    asked = json.load(sys.stdin)
    timeout_s = max(1, int(asked["timeout_s"]))
    signal.alarm(timeout_s + 5)
    json.dump(found(asked["query"], asked["base_url"], timeout_s, asked["proxy"]), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
