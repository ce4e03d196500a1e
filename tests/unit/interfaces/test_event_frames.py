"""Frames of events: what many follow is encoded once."""

from domain.ids import RunId
from domain.runs.events import RunEvent, RunEventType
from interfaces.http.runs.frames import EventFrames, event_frame
from tests.builders import RUN, START


def delta(seq: int, text: str = "…", run_id: RunId = RUN) -> RunEvent:
    data = {"message_id": "msg_1", "text": text}
    return RunEvent(run_id=run_id, seq=seq, type=RunEventType.MESSAGE_DELTA, at=START, data=dict(data))


def test_frames_of_several_events_follow_each_other_as_they_would_alone() -> None:
    frames = EventFrames()
    events = (delta(1), delta(2), delta(1, run_id=RunId("run_other")))
    assert frames.of(events) == b"".join(map(event_frame, events))
    assert frames.of(events[:2]) == event_frame(events[0]) + event_frame(events[1])


def test_few_frames_are_kept_and_large_ones_never() -> None:
    frames = EventFrames(kept=2)
    frames.of([delta(seq) for seq in range(1, 6)])
    large = delta(9, "x" * 100_000)
    assert frames.of([large]) == event_frame(large)
    assert frames.kept == 2
