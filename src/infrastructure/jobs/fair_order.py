"""The order in which the waiting runs of one process start: start-time fair queuing (ADR 0063). On PostgreSQL the function
`take_runs` decides by the same rules."""

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise

from domain.ids import RunId
from domain.runs.lane import RUN_COST, Flow

_IDLE_SHARES = 64
"""Shares without waiting runs are looked through once there are more than these."""


@dataclass(slots=True, kw_only=True)
class _Share:
    """All runs, those of an organization, of a lane in it, or of an agent in that lane (which has the runs).
    `finish` is the tag at which its next run may start in the share above, `virtual` the start tag of the last run
    taken from it."""

    weight: int = 1
    finish: int = 0
    virtual: int = 0
    waiting: int = 0
    since: int = 0
    shares: "dict[str, _Share]" = field(default_factory=dict)
    runs: OrderedDict[RunId, None] = field(default_factory=OrderedDict)

    def below(self, name: str, weight: int) -> "_Share":
        share = self.shares.setdefault(name, _Share())
        share.weight = weight
        return share

    def start_tag(self, share: "_Share") -> int:
        """A share that was idle begins at the present virtual time, and gains nothing by having been idle."""
        return max(share.finish, self.virtual)

    def next_share(self) -> "_Share":
        """The one with the least start tag; of equals, the one that waits for longest."""
        waiting = (share for share in self.shares.values() if share.waiting)
        return min(waiting, key=lambda share: (self.start_tag(share), share.since))

    def charge(self, share: "_Share") -> None:
        """One run of the share starts."""
        self.virtual = self.start_tag(share)
        share.finish = self.virtual + RUN_COST // share.weight

    def forget_idle(self) -> None:
        """Drop shares that could start at the present virtual time, which is how an unknown share begins."""
        if not self.waiting:
            self.virtual = max([self.virtual, *(share.finish for share in self.shares.values())])
        elif len(self.shares) <= _IDLE_SHARES:
            return
        self.shares = {
            name: share for name, share in self.shares.items() if share.waiting or share.finish > self.virtual
        }


class FairOrder:
    """Rules:
    - Organizations start runs in proportion to their weights while their runs wait; then the lanes of an organization
      by the lanes' weights, then the agents of a lane, all alike.
    - Runs of one agent in one lane start in order of arrival.
    - The key of a share is the organization. More agents, threads or keys give an organization no larger share.
    """

    def __init__(self) -> None:
        self._all = _Share()
        self._waiting: dict[RunId, tuple[_Share, ...]] = {}
        """The shares of each waiting run, from that of all runs to that of its agent."""
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, run_id: RunId) -> bool:
        return run_id in self._waiting

    def add(self, run_id: RunId, flow: Flow) -> None:
        """A run waits, unless it waits already."""
        if run_id in self._waiting:
            return
        self._arrivals += 1
        organization = self._all.below(flow.organization_id, flow.weight)
        lane = organization.below(flow.lane, flow.lane.weight)
        agent = lane.below(flow.agent_id, 1)
        self._waiting[run_id] = path = (self._all, organization, lane, agent)
        for share in path:
            if not share.waiting:
                share.since = self._arrivals
            share.waiting += 1
        agent.runs[run_id] = None

    def take(self) -> RunId | None:
        """The run that starts next; None if none waits."""
        if not self._waiting:
            return None
        agent = self._all
        while agent.shares:
            agent = agent.next_share()
        run_id = next(iter(agent.runs))
        for above, share in pairwise(self._waiting[run_id]):
            above.charge(share)
        self.discard(run_id)
        return run_id

    def discard(self, run_id: RunId) -> None:
        """The run waits no longer; its organization is not charged for it."""
        path = self._waiting.pop(run_id, ())
        for share in path:
            share.waiting -= 1
        for above, share in pairwise(path):
            share.runs.pop(run_id, None)
            above.forget_idle()
