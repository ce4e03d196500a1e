"""The control group (version 2) that a supervisor gave this service to divide, as systemd does with
`Delegate=memory pids`."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

from infrastructure.confinement.control_group import STARTED, end_group
from infrastructure.confinement.leftovers import is_left

logger = logging.getLogger(__name__)

CONTROLLERS = ("memory", "pids")
_OWN = "service"
_SIGNS = ("user.delegate", "trusted.delegate")
"""Extended attributes by which systemd says that a group is its processes' to divide (systemd,
CGROUP_DELEGATION)."""


def is_given(group: Path) -> bool:
    """Whether the supervisor says that the group may be divided."""

    def says(name: str) -> bool:
        try:
            return os.getxattr(group, name) == b"1"
        except OSError:
            return False

    return any(map(says, _SIGNS))


class GivenGroup:
    """Rules:
    - A group is divided only if its supervisor says so, it has the `controllers`, this process may
      write it, and the kernel can end all processes of a group at once.
    - Processes and children may not share a group with controllers (cgroups(7), no internal
      processes): all processes of the group move into one below it.
    - Groups of processes whose service is gone are ended.

    `own` and `mounts` are files of /proc about this process.
    """

    def __init__(
        self,
        *,
        own: Path = Path("/proc/self/cgroup"),
        mounts: Path = Path("/proc/self/mountinfo"),
        controllers: tuple[str, ...] = CONTROLLERS,
        given: Callable[[Path], bool] = is_given,
    ) -> None:
        self._own = own
        self._mounts = mounts
        self._controllers = controllers
        self._given = given
        self._taken: Path | None = None

    @property
    def path(self) -> Path | None:
        """The group in which those of started processes are; None before `take`, and without
        one."""
        return self._taken

    def take(self) -> bool:
        """Prepare the group for started processes; False if there is none. Blocks for files of the
        kernel."""
        group = self._found()
        if group is None or not self._is_usable(group):
            return False
        try:
            self._divide(group)
        except OSError as error:
            logger.warning("the control group of this service could not be divided: %s", error.strerror)
            return False
        self._taken = group
        for left in group.glob(f"{STARTED}*"):
            if is_left(left.name.removeprefix(STARTED).replace("-", ":")) and not end_group(str(left)):
                logger.warning("a control group of a service that is gone could not be removed: %s", left.name)
        return True

    def _found(self) -> Path | None:
        """The group of this process, where it is mounted."""
        try:
            lines = self._own.read_text(encoding="utf-8").splitlines()
            mounts = self._mounts.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return None
        name = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
        if name is None:
            return None
        inner = Path(name)
        for line in mounts:
            fields, _, rest = line.partition(" - ")
            _, _, _, root, place, *_ = fields.split(" ")
            if rest.startswith("cgroup2 ") and inner.is_relative_to(root):
                group = Path(place) / inner.relative_to(root)
                # A process that was started in the group of a service is in the one below.
                return group.parent if group.name == _OWN else group
        return None

    def _is_usable(self, group: Path) -> bool:
        try:
            offered = (group / "cgroup.controllers").read_text(encoding="ascii").split()
        except OSError:
            return False
        changed = (group, group / "cgroup.procs", group / "cgroup.subtree_control")
        is_ours = all(os.access(path, os.W_OK) for path in changed)
        can_end = (group / "cgroup.kill").exists()  # not before Linux 5.14
        return is_ours and can_end and set(self._controllers) <= set(offered) and self._given(group)

    def _divide(self, group: Path) -> None:
        own = group / _OWN
        own.mkdir(exist_ok=True)
        for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
            try:
                _write(own / "cgroup.procs", pid)
            except ProcessLookupError:
                continue
        _write(group / "cgroup.subtree_control", " ".join(f"+{name}" for name in self._controllers))


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="ascii") as file:
        file.write(text)
