"""Schedules that were saved before a bound of inputs was there."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.threads.attachments import MAX_ATTACHMENTS
from domain.threads.message import ImageContent
from tests.doubles.surroundings import START
from tests.schedule_builders import a_schedule
from tests.unit.application.schedules.schedule_harness import ScheduleHarness

DUE = START + timedelta(minutes=1)


@pytest.mark.requirement("E7")
async def test_a_schedule_saved_before_the_bounds_of_attachments_is_fired() -> None:
    harness = ScheduleHarness()
    pictures = (ImageContent(media_type="image/png", data="aGk="),) * (MAX_ATTACHMENTS + 1)
    await harness.add(replace(a_schedule(cron="1 * * * *", next_fire_at=DUE), input=pictures))
    await harness.at(DUE)
    assert [run.input for run in harness.begun] == [pictures]
