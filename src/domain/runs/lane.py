"""The order of waiting runs: lanes, and what a run's place depends on (ADR 0063)."""

from dataclasses import dataclass
from enum import StrEnum


class Lane(StrEnum):
    """How a run is preferred to other waiting runs of its organization. The values are public."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    BATCH = "batch"

    @property
    def weight(self) -> int:
        """Its share of the starts of an organization while runs wait in all lanes."""
        return LANE_WEIGHTS[self]


LANE_WEIGHTS = {Lane.INTERACTIVE: 9, Lane.NORMAL: 3, Lane.BATCH: 1}
MAX_QUEUE_WEIGHT = 1_000
"""Of an organization."""
RUN_COST = 720_720
"""How far a run moves the tags of a share of weight 1: whole numbers, exact for weights up to
16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The runs that wait in one line: those of an agent in a lane of its organization.
    `weight` is the organization's. At most `max_running` runs of the organization, and
    `agent_max_running` of the agent, are in progress at a time. Workflow runs have no agent, and
    these bounds do not concern them."""

    organization_id: str
    lane: Lane = Lane.NORMAL
    agent_id: str = ""
    weight: int = 1
    max_running: int | None = None
    agent_max_running: int | None = None

    @property
    def is_bounded(self) -> bool:
        return self.max_running is not None or self.agent_max_running is not None
