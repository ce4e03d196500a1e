"""A client in a process of its own that asks a service again and again:
`python bystander.py URL KEY PID`.

Prints a line once it is connected; when its standard input ends:

- the number of its requests
- how long the service was busy during the worst of them (s): the time it took, or the CPU that the
  service used meanwhile if that is less. A machine that is busy with other things makes a client
  wait, but no service work.
- how long the slowest took (s)
"""

import http.client
import os
import select
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

_FEWEST = 20


def cpu_s(pid: str) -> float:
    """CPU that a process has used, in user mode and in the kernel (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(url: str, key: str, pid: str) -> None:
    """Ask until standard input ends."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)
    requests, busy_s, waited_s = 0, 0.0, 0.0
    while True:
        began, used_s = time.monotonic(), cpu_s(pid)
        connection.request("GET", "/v1/agents?limit=1", headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit(f"answered {response.status}")
        if requests:
            took_s = time.monotonic() - began
            busy_s, waited_s = max(busy_s, min(took_s, cpu_s(pid) - used_s)), max(waited_s, took_s)
        else:
            sys.stdout.write("connected\n")
            sys.stdout.flush()
        requests += 1
        if select.select([sys.stdin], [], [], 0.01)[0] and requests >= _FEWEST:
            break
    sys.stdout.write(f"{requests} {busy_s} {waited_s}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
