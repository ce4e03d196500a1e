"""The compliance suite of Open Responses, from a checkout of its repository: no registry has it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.front_ends import NODE_MODULES
from tests.e2e.service import a_turn, serving
from tests.e2e.test_gateway_conformance import NODES

IMPLEMENTED = (
    "basic-response",
    "assistant-phase",
    "response-output-phase-schema",
    "streaming-response",
    "system-prompt",
    "tool-calling",
    "tool-calling-streaming",
    "image-input",
    "multi-turn",
)
"""All but what belongs to WebSockets and to compaction; versions of the suite have different ones
of these."""


@pytest.mark.requirement("X1")
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    "DRAGOMAN_TEST_OPEN_RESPONSES" not in os.environ, reason="opt in with DRAGOMAN_TEST_OPEN_RESPONSES=CHECKOUT"
)
def test_the_compliance_suite_of_open_responses_passes(tmp_path: Path) -> None:
    checkout = Path(os.environ["DRAGOMAN_TEST_OPEN_RESPONSES"])
    suite = tmp_path / "suite.mjs"
    options = ["--bundle", "--platform=node", "--format=esm", "--alias:zod=zod/v3", f"--outfile={suite}"]
    subprocess.run(
        [NODES[-1], NODE_MODULES / "esbuild" / "bin" / "esbuild", checkout / "bin" / "compliance-test.ts", *options],
        check=True,
        env={**os.environ, "NODE_PATH": str(NODE_MODULES)},
        timeout=120,
    )
    known = (checkout / "src" / "lib" / "compliance-tests.ts").read_text(encoding="utf-8")
    wanted = [name for name in IMPLEMENTED if f'id: "{name}"' in known]
    with serving(tmp_path / "home") as service:
        call = {**a_turn("", ("get_weather", {"location": "San Francisco"})), "when": {"user": "weather"}}
        service.agent("any", service.script("any", call, a_turn("Hello there, friend.")))
        arguments = ["-u", f"{service.url}/openai/v1", "-k", service.key, "-m", "any", "-f", ",".join(wanted), "--json"]
        done = subprocess.run(
            [NODES[-1], suite, *arguments], capture_output=True, text=True, timeout=200, check=False, cwd=tmp_path
        )
    told = json.loads(done.stdout)
    assert told["summary"]["passed"] == len(wanted), [each for each in told["results"] if each["status"] != "passed"]
