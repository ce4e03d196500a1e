"""Files of the command line as parts of messages."""

from pathlib import Path

import pytest

from domain.threads.attachments import MAX_ATTACHED_BYTES
from tests.unit.interfaces.cli.fake_service import run_document
from tests.unit.interfaces.cli.test_run_commands import service_of

pytestmark = pytest.mark.requirement("H5")


def test_files_are_attached_to_the_message(tmp_path: Path) -> None:
    picture, notes = tmp_path / "a.png", tmp_path / "notes.md"
    picture.write_bytes(b"\x89PNG")
    notes.write_text("Walrus.")
    service = service_of(run_document(output="I see."))
    arguments = ("--agent", "guide", "--attach", str(picture), "--attach", str(notes))
    assert service.run("run", "What is it?", *arguments).exit_code == 0
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "media_type": "image/png", "data": "iVBORw=="},
        {"type": "file", "media_type": "text/markdown", "name": "notes.md", "data": "V2FscnVzLg=="},
    ]
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": parts}]


def test_files_that_cannot_be_attached_start_nothing(tmp_path: Path) -> None:
    large = tmp_path / "large.zip"
    large.write_bytes(bytes(MAX_ATTACHED_BYTES // 2 + 1))
    service = service_of(run_document())
    for files, said in (([large, large], "at most 7 MiB"), ([tmp_path / "none"], "cannot be read")):
        attached = [argument for file in files for argument in ("--attach", str(file))]
        outcome = service.run("run", "What is it?", "--agent", "guide", *attached)
        assert (outcome.exit_code, said in outcome.err) == (2, True)
    assert service.requests == []
