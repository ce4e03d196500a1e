"""A "server" with children of every stubborn kind: writes their ids, one JSON list, to stdout once
all are running."""

import json
import os
import signal
import sys

IGNORING = "ignoring"


def child(kind: str, report: int) -> None:
    """Forks one process (for daemon: two) that reports its id and stays for ever."""
    if os.fork() != 0:
        return
    if kind in ("own_session", "daemon"):
        os.setsid()
    if kind == "daemon" and os.fork() != 0:
        os._exit(0)  # the daemon is an orphan now
    if kind == IGNORING:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    if kind == "stopped":
        os.write(report, b"%d\n" % os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
    os.write(report, b"%d\n" % os.getpid())
    while True:
        signal.pause()


def main(kinds: list[str]) -> None:
    leave = "leave" in kinds
    kinds = [kind for kind in kinds if kind != "leave"]
    reports, report = os.pipe()
    for kind in kinds:
        child(kind, report)
    with os.fdopen(reports) as lines:
        pids = [int(lines.readline()) for _ in kinds]
    sys.stdout.write(json.dumps([os.getpid(), *pids]) + "\n")
    sys.stdout.flush()
    if leave:
        os._exit(5)
    while True:  # closing stdin is not enough for this one
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
