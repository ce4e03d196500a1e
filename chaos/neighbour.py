"""The client of an organization beside a hostile one, in a process of its own:
`python -m chaos.neighbour URL KEY PID`.

For each line of standard input, which names numbers of gateway calls and of runs, it makes them one
after the other. It prints how long each took as JSON:
`{"calls": [seconds, …], "busy": [seconds, …], "runs": [seconds, …]}`. `busy` is how long the
service worked during a call, on whatever it was, if that is less: a busy machine makes a client
wait, but no service work.
"""

import http.client
import json
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

AGENT = "neighbour"
TOOL = "mcp__quiet__look"
PAUSE_S = 0.004
"""Between calls, so that a round lasts as long as hostile servers need to act."""


class Neighbour:
    """One connection for everything."""

    def __init__(self, url: str, key: str, service: int) -> None:
        address = urlsplit(url)
        self._worked = (~service << 3) | 2  # CPU time of all threads of a process (clock_getcpuclockid(3))
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=300)
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }

    def call(self) -> None:
        """A call of a tool through the gateway. Raises RuntimeError if it failed."""
        params = {"name": TOOL, "arguments": {"text": "hello"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = self._post(f"/mcp?agent={AGENT}", message)
        if "result" not in answer or answer["result"]["isError"]:
            raise RuntimeError(f"a call failed: {answer}")

    def run(self) -> None:
        """A run with one model call. Raises RuntimeError if it failed."""
        answer = self._post("/v1/runs/wait", {"agent": AGENT, "input": "Go."})
        if "run" not in answer or answer["run"]["status"] != "completed":
            raise RuntimeError(f"a run failed: {answer}")

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(body), self._headers)
        found: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return found

    def round(self, calls: int, runs: int) -> dict[str, list[float]]:
        """Runs are spread over the calls."""
        taken: dict[str, list[float]] = {"calls": [], "busy": [], "runs": []}
        every = max(calls // max(runs, 1), 1)
        for number in range(calls):
            worked = time.clock_gettime(self._worked)
            taken["calls"].append(_timed(self.call))
            taken["busy"].append(min(taken["calls"][-1], time.clock_gettime(self._worked) - worked))
            if number % every == 0 and len(taken["runs"]) < runs:
                taken["runs"].append(_timed(self.run))
            time.sleep(PAUSE_S)
        return taken


def _timed(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def main(url: str, key: str, service: str) -> None:
    """Until standard input ends."""
    neighbour = Neighbour(url, key, int(service))
    for line in sys.stdin:
        calls, runs = map(int, line.split())
        sys.stdout.write(json.dumps(neighbour.round(calls, runs)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
