"""The connection of the synchronous client, written by `make clients` from the asynchronous one: change that."""

import os
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Self, TypeAlias

import time
import httpx

from dragoman_client.errors import ConnectionLost, DragomanError, LimitReached, Unavailable, api_error
from dragoman_client.frames import HEARTBEATS_MISSED_S, Frames, pauses

_BUSY = frozenset({429, 502, 503, 504})
"""Statuses that may be others a moment later."""
_LONGEST_RETRY_AFTER_S = 30.0
Json: TypeAlias = dict[str, Any]


class Connection:
    """The HTTP connection of a client: requests, retries, pages and streams."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 60.0,
        retries: int = 6,
        http: httpx.Client | None = None,
    ) -> None:
        base = url or os.environ.get("DRAGOMAN_URL", "http://127.0.0.1:8321")
        key = api_key or os.environ.get("DRAGOMAN_API_KEY", "")
        if not key:
            raise DragomanError("There is no API key: give `api_key`, or set DRAGOMAN_API_KEY.")
        self._http = http or httpx.Client(timeout=timeout_s)
        self._base = f"{base.rstrip('/')}/v1"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        repeatable: bool | None = None,
    ) -> Any:
        """Any operation of the HTTP API, by its path below `/v1`: the decoded JSON of the response,
        or None."""
        response = self._send(
            method, path, repeatable=method == "GET" if repeatable is None else repeatable,
            json=json, content=content, params=_stated(params), headers={**self._headers, **(headers or {})},
        )  # fmt: skip
        return response.json() if response.content else None

    def download(self, source_id: str) -> bytes:
        """The content of a source."""
        response = self._send("GET", f"/sources/{source_id}/content", repeatable=True, headers=self._headers)
        return response.content

    def pages(self, path: str, **params: object) -> Iterator[Any]:
        """The entries of a list, page by page as they are needed."""
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params={**params, "cursor": cursor})
            for entry in page["data"]:
                yield entry
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _send(self, method: str, path: str, *, repeatable: bool, **request: Any) -> httpx.Response:
        for pause in (*pauses(self._retries), None):
            try:
                response = self._http.request(method, f"{self._base}{path}", **request)
            except httpx.TransportError as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause is None or not (repeatable or never_sent):
                    raise ConnectionLost(f"{method} {path}: {error!r}") from error
                wait_s = pause
            else:
                busy_s = _wait(response, pause) if repeatable else None
                if busy_s is None:
                    return _checked(response)
                wait_s = busy_s
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def follow(self, path: str, after: int) -> Generator[Json, None, None]:
        """Every event after `after` once and in order, then `end`. A stream that breaks is opened
        again after its last event. Raises ConnectionLost when that fails too often in a row."""
        timeout = httpx.Timeout(self._http.timeout.connect, read=HEARTBEATS_MISSED_S)
        waits = pauses(self._retries)
        while True:
            reason: Exception | None = None
            headers = {**self._headers, "Last-Event-ID": str(after)}
            try:
                with self._http.stream("GET", f"{self._base}{path}", headers=headers, timeout=timeout) as response:
                    if response.is_error:
                        response.read()
                    frames = Frames()
                    for line in _checked(response).iter_lines():
                        event = frames.feed(line)
                        if event is not None and event.get("seq", after + 1) > after:
                            after, waits = event.get("seq", after), pauses(self._retries)
                            yield event
                            if event["type"] == "end":
                                return
            except (httpx.TransportError, Unavailable, LimitReached) as error:
                reason = error
            pause = next(waits, None)
            if pause is None:
                raise ConnectionLost(f"The stream {path} broke: {reason or 'it ended early'}") from reason
            time.sleep(pause)


def _checked(response: httpx.Response) -> httpx.Response:
    """The response, unless it is an error."""
    if not response.is_error:
        return response
    try:
        problem = response.json()
    except ValueError:
        problem = None
    raise api_error(response.status_code, problem)


def _wait(response: httpx.Response, pause: float | None) -> float | None:
    """Seconds until a busy service is asked again; None if the response stays."""
    if pause is None or response.status_code not in _BUSY:
        return None
    told = response.headers.get("Retry-After", "0")
    wait_s = max(pause, float(told) if told.replace(".", "", 1).isdigit() else 0.0)
    return wait_s if wait_s <= _LONGEST_RETRY_AFTER_S else None


def _stated(values: Mapping[str, Any] | None) -> Json:
    return {name: value for name, value in (values or {}).items() if value is not None}
