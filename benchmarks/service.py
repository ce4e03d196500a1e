"""A measured `dragoman serve`: its own process and data directory, its CPU and memory as the kernel
counts them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parent.parent
READY_DEADLINE_S = 90.0
LOG = "benchmark.log"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service."""

    pid: int
    home: Path
    url: str
    key: str
    ready_s: float

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rsplit(":", 1)[1])

    def cpu_s(self) -> float:
        """User and system time of the process so far, its children not counted."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def exact_cpu_s(self) -> float:
        """The same without the kernel's rounding to ticks; of the threads that there are."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads) / 1e9

    def database_bytes(self) -> int:
        """Size of the SQLite database, with what is still in its log."""
        with closing(sqlite3.connect(f"file:{self.home / 'dragoman.db'}?mode=ro", uri=True)) as connection:
            [(pages,)] = connection.execute("PRAGMA page_count")
            [(size,)] = connection.execute("PRAGMA page_size")
        return int(pages) * int(size)

    def resident_mb(self) -> float:
        """Resident memory."""
        return self._memory_mb("VmRSS")

    def peak_mb(self) -> float:
        """The most that was resident so far."""
        return self._memory_mb("VmHWM")

    def _memory_mb(self, field: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.split(f"{field}:")[1].split()[0]) / 1024

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, object]:
        """One request of the set-up. Raises HTTPError."""
        request = Request(
            f"{self.url}/v1{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=60) as response:
            return dict(json.load(response))


@contextmanager
def running_service(
    extra: Mapping[str, str],
    command: Sequence[str] = ("interfaces.cli", "serve"),
    *,
    home: Path | None = None,
) -> Iterator[Service]:
    """Start the service, by a module and its arguments, on a new HOME or the given one, and stop it
    at the end.

    It has the settings that users get, its log too, which goes to a file of HOME; `extra` has what
    differs. As an installed one it has its bytecode, from the second start on.
    """
    with ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "DRAGOMAN_HOME": str(home),
            "DRAGOMAN_PORT": "0",
            "DRAGOMAN_EGRESS_ALLOW": "127.0.0.0/8",  # the servers it calls are on this machine
            "DRAGOMAN_MCP_READABLE": str(ROOT),  # the server over stdio is a module of this package
            **extra,
        }
        began = time.perf_counter()
        log = stack.enter_context((home / LOG).open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env=environment, stdout=subprocess.DEVNULL, stderr=log, cwd=ROOT
        )
        try:
            url = _announced(home, process)
            yield Service(
                pid=process.pid,
                home=home,
                url=url,
                key=(home / "admin.key").read_text(encoding="utf-8").strip(),
                ready_s=time.perf_counter() - began,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _announced(home: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + READY_DEADLINE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = (home / LOG).read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise SystemExit(f"the service ended with exit status {process.returncode}; its log ends so:\n{last}")
        try:
            return str(json.loads((home / "serve.json").read_text(encoding="utf-8"))["url"])
        except (FileNotFoundError, json.JSONDecodeError):
            time.sleep(0.01)
    raise SystemExit("the service did not become ready")
