"""The compatibility kit of A2A (github.com/a2aproject/a2a-tck, branch 1.0-dev), from a checkout
that has what it needs in `.venv`: no registry has it."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.e2e.a2a_adapter import adapter
from tests.e2e.service import Json, a_turn, serving

ASK = ("send_email", {"subject": "Hi", "body": "Which?", "to": "a@example.com"})
SCHEMA: Json = {"type": "object", "properties": {"key": {"type": "string"}, "count": {"type": "integer"}}}
TURNS: list[Json] = [
    {**a_turn("Generated text content"), "when": {"user": "tck-artifact-text"}},
    {**a_turn("Streamed text content"), "when": {"user": "tck-stream-artifact-text"}},
    {**a_turn("Which?", ASK), "when": {"user": "tck-input-required", "has_results": False}},
    a_turn("Hello from TCK"),
]
CORE = "tests/compatibility/core_operations"
NOT_OURS = {
    f"{CORE}/test_artifacts.py::TestFileArtifact": "The answer is our first artifact; files follow it.",
    f"{CORE}/test_artifacts.py::TestFileUrlArtifact": "The answer is our first artifact; files follow it.",
    f"{CORE}/test_artifacts.py::TestMessageResponse": "All our answers are tasks, as 3.1.1 lets them be.",
    f"{CORE}/test_requirements.py::test_must_requirement[CORE-SEND-003-jsonrpc]": "Our error is the required one; the kit expects none.",
    f"{CORE}/test_requirements.py::test_must_requirement[CORE-SEND-003-http_json]": "Our error is the required one; the kit expects none.",
}
PUSHES = ("CREATE-001", "CREATE-002", "GET-001", "GET-002", "LIST-001", "DEL-001", "DEL-002")
DELIVERIES = ("DELIVER-001", "DELIVER-002", "DELIVER-003")


@pytest.mark.requirement("X5")
@pytest.mark.timeout(600)
@pytest.mark.skipif("DRAGOMAN_TEST_A2A_TCK" not in os.environ, reason="opt in with DRAGOMAN_TEST_A2A_TCK=CHECKOUT")
async def test_the_compatibility_kit_of_a2a_passes(tmp_path: Path) -> None:
    checkout = Path(os.environ["DRAGOMAN_TEST_A2A_TCK"])
    report = tmp_path / "report"
    async with adapter() as way:
        with serving(tmp_path / "home", DRAGOMAN_PUBLIC_URL=way.url) as service:
            way.target, way.key = service.url, service.key
            service.agent("tck", service.script("tck", *TURNS), tools=["send_email"])
            data = service.script("tck-data", a_turn('{"key": "value", "count": 42}'))
            service.agent("tck-data", data, output_schema=SCHEMA)
            options = ["tests/compatibility", "-m", "must", "-q", "-p", "no:cacheprovider"]
            left = [f"--deselect={each}" for each in NOT_OURS]
            own = [f"--sut-host={way.url}/a2a/v1/tck", "--webhook-host=127.0.0.1", f"--compatibility-report={report}"]
            kit = await asyncio.create_subprocess_exec(
                str(checkout / ".venv" / "bin" / "python"),
                *("-m", "pytest", *options, *left, *own),
                cwd=checkout,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(checkout)},
            )
            told, _ = await kit.communicate()
    assert kit.returncode == 0, told.decode()
    found = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))["per_requirement"]
    failed = {name: each["errors"] for name, each in found.items() if each["status"] == "FAIL" and each["errors"]}
    assert failed == {}
    assert {found[f"PUSH-{name}"]["status"] for name in (*PUSHES, *DELIVERIES)} == {"PASS"}
