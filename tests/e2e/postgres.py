"""Several processes of Dragoman on one PostgreSQL database, each as its users start it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.e2e.processes import until
from tests.e2e.service import DRAGOMAN, ROOT, START_S, STOP_S, Service, environment, serving

SECRET_KEY = "a-passphrase-for-all-processes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A running `dragoman worker`."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait(timeout=STOP_S)

    def stop(self) -> int:
        """Tell it to stop and wait for it; its exit status."""
        self.process.terminate()
        return self.process.wait(timeout=STOP_S)


@dataclass(slots=True, kw_only=True)
class Cluster:
    """Processes that share the database at `url`, with the settings `extra`. The scripts of models
    are the same for all of them."""

    url: str
    folder: Path
    running: ExitStack
    services: list[Service] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        return {"DRAGOMAN_DATABASE_URL": self.url, "DRAGOMAN_SECRET_KEY": SECRET_KEY, **self.extra}

    def serve(self, name: str, *arguments: str) -> Service:
        """Start a service with a HOME of its own."""
        home = self._home(name)
        if self.services:
            (home / "admin.key").write_text(self.services[0].key + "\n", encoding="utf-8")
        service = self.running.enter_context(serving(home, *arguments, **self.settings))
        self.services.append(service)
        return service

    def work(self, name: str, **settings: str) -> Worker:
        """Start a worker; ready when this returns."""
        home = self._home(name)
        output, log = self.folder / f"{name}.stdout", self.folder / f"{name}.stderr"
        with output.open("wb") as stdout, log.open("wb") as stderr:
            process = subprocess.Popen(
                [*DRAGOMAN, "worker"],
                env=environment(home, **self.settings, **settings),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.running.callback(_ended, process)

        def ready() -> bool:
            assert process.poll() is None, log.read_text(encoding="utf-8")[-4000:]
            return b"ready" in output.read_bytes()

        until(ready, START_S, what=f"the worker {name}")
        return Worker(name=name, process=process, log=log)

    def ask(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the database."""
        with psycopg.connect(self.url) as connection:
            connection.execute("SET ROLE dragoman_system")
            return connection.execute(statement.encode(), parameters).fetchall()

    def _home(self, name: str) -> Path:
        home, scripts = self.folder / name, self.folder / "scripted"
        scripts.mkdir(exist_ok=True)
        home.mkdir(exist_ok=True)
        if not (home / "scripted").exists():
            (home / "scripted").symlink_to(scripts)
        return home


@contextmanager
def cluster(url: str, folder: Path) -> Iterator[Cluster]:
    """Nothing runs yet; everything is stopped at the end."""
    with ExitStack() as running:
        yield Cluster(url=url, folder=folder, running=running)


def _ended(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
