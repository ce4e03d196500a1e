"""Whether an attack harms others: requests of another organization meanwhile, and the memory of the
service."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from tests.e2e.processes import resident_bytes
from tests.e2e.service import Service
from tests.processor_time import slowness

Result = TypeVar("Result")

BOUND_S = 0.25
"""How long the service may be busy with something else while a client of another organization waits
for an answer (bystander.py). A slow machine has more."""
LONGEST_S = 30.0
"""How long that client may wait in any case, on a machine that is busy with other things: frozen
services took minutes."""
MEMORY = 64 * 1024 * 1024
"""How much more memory the service may hold, at its peak."""


def unharmed(service: Service, attack: Callable[[], Result], *, memory: int = MEMORY) -> Result:
    """Make the attack, and return its result. Fails if it harms others. If they waited too long,
    the attack is made once more, because other programs may have been using the machine."""
    before = resident_bytes(service.process.pid, peak=True)
    bound_s = BOUND_S * slowness()
    result, busy_s, waited_s = _beside(service, attack)
    if busy_s > bound_s or waited_s > LONGEST_S:
        result, busy_s, waited_s = _beside(service, attack)
    assert busy_s <= bound_s, f"the service was busy for {busy_s:.2f} s during a request of another organization"
    assert waited_s <= LONGEST_S, f"a request of another organization took {waited_s:.2f} s"
    assert resident_bytes(service.process.pid, peak=True) - before <= memory
    return result


def _beside(service: Service, attack: Callable[[], Result]) -> tuple[Result, float, float]:
    created = service.call("POST", "/organizations", {"name": f"bystander-{uuid4().hex}"})
    command = [
        sys.executable,
        str(Path(__file__).with_name("bystander.py")),
        service.url,
        created["admin_key"]["token"],
        str(service.process.pid),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bystander:
        try:
            assert bystander.stdout is not None
            assert bystander.stdout.readline() == "connected\n"
            result = attack()
            said, _ = bystander.communicate(timeout=120)
        finally:
            bystander.kill()
    requests, busy_s, waited_s = said.split()
    assert int(requests) > 1
    return result, float(busy_s), float(waited_s)
