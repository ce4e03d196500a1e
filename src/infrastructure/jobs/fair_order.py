"""The order in which the waiting runs of one process start: start-time fair queuing (ADR 0063). On
PostgreSQL the function `take_runs` decides by the same rules."""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from domain.ids import RunId
from domain.runs.lane import RUN_COST, Flow

_PLACES_FOR_ONE_SPARE = 4
_IDLE_SHARES = 64
"""Shares without waiting runs are looked through once there are more than these."""


def spare_places(concurrency: int) -> int:
    """Places of a worker beside `concurrency`, for runs of organizations without a run there (ADR
    0101)."""
    return concurrency // _PLACES_FOR_ONE_SPARE


@dataclass(slots=True, kw_only=True, eq=False)
class _Share:
    """All runs, those of an organization, of a lane in it, or of an agent in that lane (which has
    the runs and a flow). `finish` is the tag at which its next run may start in the share above,
    `virtual` the start tag of the last run taken from it."""

    weight: int = 1
    finish: int = 0
    virtual: int = 0
    waiting: int = 0
    since: int = 0
    shares: "dict[str, _Share]" = field(default_factory=dict)
    flow: Flow | None = None
    runs: OrderedDict[RunId, None] = field(default_factory=OrderedDict)

    def below(self, name: str, weight: int) -> "_Share":
        share = self.shares.setdefault(name, _Share())
        share.weight = weight
        return share

    def start_tag(self, share: "_Share") -> int:
        """A share that was idle begins at the present virtual time, and gains nothing by having
        been idle."""
        return max(share.finish, self.virtual)

    def in_order(self) -> "Iterator[_Share]":
        """Those with waiting runs, by their start tags; of equals, the one that waits for longest
        is first."""
        waiting = [share for share in self.shares.values() if share.waiting]
        while waiting:
            share = min(waiting, key=lambda share: (self.start_tag(share), share.since))
            yield share
            waiting.remove(share)

    def lines(self) -> "Iterator[_Share]":
        """The shares of agents below with waiting runs."""
        if self.flow is not None:
            yield self
        for share in self.shares.values():
            if share.waiting:
                yield from share.lines()

    def charge(self, share: "_Share") -> None:
        """One run of the share starts."""
        self.virtual = self.start_tag(share)
        share.finish = self.virtual + RUN_COST // share.weight

    def charge_spare(self, share: "_Share") -> None:
        """One run of the share starts before its turn: others keep theirs, and the share waits two
        turns at most for it."""
        cost = RUN_COST // share.weight
        share.finish = max(share.finish, min(self.start_tag(share), self.virtual + cost) + cost)

    def forget_idle(self) -> None:
        """Drop shares that could start at the present virtual time, which is how an unknown share
        begins."""
        if not self.waiting:
            self.virtual = max([self.virtual, *(share.finish for share in self.shares.values())])
        elif len(self.shares) <= _IDLE_SHARES:
            return
        self.shares = {
            name: share for name, share in self.shares.items() if share.waiting or share.finish > self.virtual
        }


class FairOrder:
    """Rules:
    - Organizations start runs in proportion to their weights while their runs wait; then the lanes
      of an organization by the lanes' weights, then the agents of a lane, all alike.
    - Runs of one agent in one lane start in order of arrival.
    - The key of a share is the organization. More agents, threads or keys give an organization no
      larger share.
    - A run of an organization or agent that has as many taken runs as may be in progress waits.
      Runs of others pass it, and waiting gains it nothing.
    - A spare place goes to the organization without a taken run that is next. It is charged for the
      run, and no other loses its turn.
    """

    def __init__(self) -> None:
        self._all = _Share()
        self._waiting: dict[RunId, tuple[_Share, ...]] = {}
        """The shares of each waiting run, from that of all runs to that of its agent."""
        self._arrivals = 0
        self._taken: dict[RunId, Flow] = {}
        """The runs that were taken and have not left."""
        self._places: Counter[str] = Counter()
        """How many places of each organization and agent are occupied."""
        self._bounded = False
        """Whether a run with a bound has ever waited. Without any, no share is looked at twice."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, run_id: RunId) -> bool:
        return run_id in self._waiting

    def add(self, run_id: RunId, flow: Flow) -> None:
        """A run waits. If it waits already, weight and bounds of its flow are as they are now."""
        organization = self._all.below(flow.organization_id, flow.weight)
        lane = organization.below(flow.lane, flow.lane.weight)
        agent = lane.below(flow.agent_id, 1)
        agent.flow = flow
        self._bounded = self._bounded or flow.is_bounded
        if run_id in self._waiting:
            return
        self._arrivals += 1
        self._waiting[run_id] = path = (self._all, organization, lane, agent)
        for share in path:
            if not share.waiting:
                share.since = self._arrivals
            share.waiting += 1
        agent.runs[run_id] = None

    def take(self, *, spare: bool = False) -> RunId | None:
        """The run that starts next, in a `spare` place or another; None if none waits that may."""
        ready: Iterator[_Share] = filter(self._is_ready, self._all.in_order())
        if spare:
            present = {self._all.shares.get(flow.organization_id) for flow in self._taken.values()}
            ready = filter(lambda share: share not in present, ready)
        organization = next(ready, None)
        if organization is None:
            return None
        agent = organization
        while agent.flow is None:
            agent = next(filter(self._is_ready, agent.in_order()))
        run_id = next(iter(agent.runs))
        (self._all.charge_spare if spare else self._all.charge)(organization)
        for above, below in pairwise(self._waiting[run_id][1:]):
            above.charge(below)
        self._taken[run_id] = agent.flow
        self.occupy(agent.flow)
        self.discard(run_id)
        return run_id

    def left(self, run_id: RunId) -> None:
        """A run that was taken has left its place."""
        flow = self._taken.pop(run_id, None)
        if flow is not None:
            self.release(flow)

    def occupy(self, flow: Flow) -> None:
        """A run of the flow has a place, whether or not it waited."""
        self._count(flow, 1)

    def release(self, flow: Flow) -> None:
        """A place that was occupied is free."""
        self._count(flow, -1)

    def blocked(self) -> Iterator[RunId]:
        """The first run of each line that waits for a place of its organization or agent."""
        if self._bounded:
            yield from (next(iter(line.runs)) for line in self._all.lines() if not self._is_ready(line))

    def _count(self, flow: Flow, runs: int) -> None:
        for name in (flow.organization_id, flow.agent_id) if flow.agent_id else ():
            self._places[name] += runs
            if not self._places[name]:
                del self._places[name]

    def _is_ready(self, share: _Share) -> bool:
        """Whether a waiting run below may start."""
        return not self._bounded or any(self._has_place(line.flow) for line in share.lines())

    def _has_place(self, flow: Flow | None) -> bool:
        if flow is None or not flow.agent_id:
            return True
        bounds = ((flow.organization_id, flow.max_running), (flow.agent_id, flow.agent_max_running))
        return all(bound is None or self._places[name] < bound for name, bound in bounds)

    def discard(self, run_id: RunId) -> None:
        """The run waits no longer; its organization is not charged for it."""
        path = self._waiting.pop(run_id, ())
        for share in path:
            share.waiting -= 1
        for above, share in pairwise(path):
            share.runs.pop(run_id, None)
            above.forget_idle()
