"""Whatever clients, workers and time do to runs, in any order: what must always hold holds, and no
run is stuck."""

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.builders import ORG, an_organization
from tests.contract.run_play import Act, Play
from tests.contract.stores import InMemoryLeg, Leg

# Advancing is what makes a story; the rest gets in its way.
ACTS = st.tuples(
    st.sampled_from([*Act, *[Act.ADVANCE] * 8, *[Act.CLAIM] * 2, Act.START, Act.CANCEL, Act.RESUME]),
    st.integers(min_value=0, max_value=5),
    st.integers(min_value=0, max_value=7),
)
STORIES = st.lists(ACTS, min_size=10, max_size=40)

Story = list[tuple[Act, int, int]]


async def play(leg: Leg, story: Story) -> None:
    async with leg.open(an_organization(ORG)) as stores:
        playing = Play(stores)
        await playing.begin()
        for act, first, second in story:
            await playing.perform(act, first, second)
        note(f"seen: {dict(playing.seen)}")
        await playing.end()


@pytest.mark.requirement("E2", "E3", "E4", "E5", "A12", "D5")
@given(story=STORIES)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_the_invariants_of_runs_hold_over_every_backend(leg: Leg, story: Story) -> None:
    await play(leg, story)


@pytest.mark.requirement("E2", "E3", "E4", "E5", "A12", "D5")
@given(story=STORIES)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_the_invariants_of_runs_hold_in_many_stories(request: pytest.FixtureRequest, story: Story) -> None:
    """The rules themselves, on the fastest backend."""
    await play(InMemoryLeg(request), story)
