"""The programs of the guide to OpenAI's SDKs, as they stand there."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.documents.pages import blocks
from tests.e2e.service import ROOT, Service, a_turn, serving
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.requirement("U3")]

PYTHON = ROOT / ".venv-peers" / "bin" / "python"


@pytest.mark.requirement("X1", "X2")
def test_the_programs_of_the_guide_work_as_written(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        service.agent("guide", service.script("guide", {"text": "You said: {{ user }}"}))
        asks = a_turn("", ("weather", {"city": "Lisbon"}))
        service.agent("coats", service.script("coats", asks, a_turn("No coat: {{ results.last }}.")))
        printed = [ran(service, block.text) for block in blocks("docs/guides/openai.md") if block.language == "python"]
    assert printed == [
        "You said: What can you do?\nYou said: And in one word?",
        "You said: What can you do?\nYou said: And in one word?\n",
        "No coat: 18 degrees, sunny.\n",
    ]


def ran(service: Service, program: str) -> str:
    done = subprocess.run(
        [PYTHON, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "OPENAI_BASE_URL": f"{service.url}/openai/v1", "OPENAI_API_KEY": service.key},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
