"""Chat completions and responses as OpenAI's own library for JavaScript has them."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.service import ROOT, a_turn, serving
from tests.e2e.test_gateway_conformance import NODES

CLIENT = ROOT / "tests" / "node" / "openai_client.mjs"


@pytest.mark.requirement("X1", "X2")
@pytest.mark.skipif(
    not (NODES and (CLIENT.parent / "node_modules" / "openai").exists()), reason="needs `make node peers`"
)
def test_the_javascript_library_lists_asks_and_reads_on(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        service.watched_server("watched", trusted=True)
        calls = a_turn("", ("weather", {"city": "Lisbon"}))
        service.agent("asks", service.script("asks", calls, a_turn("It is {{ results.last }}.")))
        looks = service.script("looks", a_turn("Looking.", ("mcp__watched__look", {"text": "x"})), a_turn("Found."))
        service.agent("looks", looks, mcp_servers=["watched"])
        answered = subprocess.run(
            [NODES[-1], CLIENT, f"{service.url}/openai/v1", service.key],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answered.returncode == 0, answered.stderr
        told = json.loads(answered.stdout)
        assert told == {
            "models": ["asks", "looks"],
            "chat": "It is sun in Lisbon.",
            "responses": {"whole": True, "text": ["message", "mcp_call", "message"]},
            "failure": ["NotFoundError", 404, "model_not_found"],
        }


@pytest.mark.requirement("X1")
@pytest.mark.skipif(
    not (NODES and (CLIENT.parent / "node_modules" / "@ai-sdk" / "open-responses").exists()),
    reason="needs `make node peers`",
)
def test_the_open_responses_provider_asks_streams_shapes_and_calls_functions(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        service.watched_server("watched", trusted=True)
        usage = {"input_tokens": 7, "output_tokens": 3}
        service.agent("told", service.script("told", {"text": "You said: {{ user }}", "usage": usage}))
        calls = a_turn("", ("weather", {"city": "Lisbon"}))
        service.agent("asks", service.script("asks", calls, a_turn("It is {{ results.last }}.")))
        looks = service.script("looks", a_turn("Looking.", ("mcp__watched__look", {"text": "x"})), a_turn("Found."))
        service.agent("looks", looks, mcp_servers=["watched"])
        service.agent("shaped", service.script("shaped", a_turn('Here: {"city": "Lisbon"}')))
        answered = subprocess.run(
            [NODES[-1], CLIENT.with_name("open_responses_client.mjs"), f"{service.url}/openai/v1", service.key],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answered.returncode == 0, answered.stderr
        assert json.loads(answered.stdout) == {
            "told": {"text": "You said: hello", "finishReason": "stop", "inputTokens": 7, "outputTokens": 3},
            "streamed": {"text": "Looking.Found.", "failed": False, "finishReason": "stop"},
            "called": {"text": "It is sun in Lisbon.", "steps": 2},
            "shaped": {"city": "Lisbon"},
        }
