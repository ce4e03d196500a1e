"""Agents of frameworks whose model is an agent of ours: the framework's own loop calls its
functions."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import ROOT, a_turn, serving

PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"
CLIENT = Path(__file__).with_name("clients") / "openai_agent_of_ours.py"


@pytest.mark.timeout(400)
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make frameworks`")
@pytest.mark.parametrize(
    "wire",
    [
        pytest.param("responses", marks=pytest.mark.requirement("X1")),
        pytest.param("chat", marks=pytest.mark.requirement("X2")),
    ],
)
def test_the_agents_sdk_runs_its_loop_over_an_agent_of_ours(tmp_path: Path, wire: str) -> None:
    with serving(tmp_path / "home") as service:
        calls = a_turn("Let me see.", ("weather", {"city": "Lisbon"}), ("weather", {"city": "Porto"}))
        service.agent("guide", service.script("guide", calls, a_turn("It is {{ results.last }}.")))
        arguments = [f"{service.url}/openai/v1", service.key, "guide", wire]
        ran = subprocess.run(
            [PYTHON, CLIENT, *arguments], capture_output=True, text=True, timeout=240, check=False, env={**os.environ}
        )
        assert ran.returncode == 0, ran.stderr
        told = json.loads(ran.stdout)
        assert told == {"output": "It is sun in Porto.", "called": ["Lisbon", "Porto"]}
        [run] = service.call("GET", "/runs")["data"]
        assert (run["status"], run["usage"]["turns"]) == ("completed", 2)


@pytest.mark.requirement("X2")
@pytest.mark.timeout(400)
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make frameworks`")
def test_langchains_chat_model_asks_streams_shapes_and_calls_functions(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        service.agent("told", service.script("told", {"text": "You said: {{ user }}"}))
        service.agent("shaped", service.script("shaped", a_turn('Here: {"city": "Lisbon"}')))
        calls = a_turn("", ("weather", {"city": "Lisbon"}), ("weather", {"city": "Porto"}))
        service.agent("asks", service.script("asks", calls, a_turn("It is {{ results.last }}.")))
        client = CLIENT.with_name("langchain_chat_of_ours.py")
        ran = subprocess.run(
            [PYTHON, client, f"{service.url}/openai/v1", service.key],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == {
            "told": "You said: hello",
            "streamed": "You said: hello",
            "shaped": {"city": "Lisbon"},
            "output": "It is sun in Porto.",
            "called": ["Lisbon", "Porto"],
        }
