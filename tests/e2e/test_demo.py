"""`make demo`, without what sets it up: one run on this repository, and everything that is left of
it."""

import subprocess
import sys

import pytest

from demo.run import GIT_SERVER
from tests.completeness import beyond
from tests.e2e.service import ROOT

SECTIONS = (
    "A real MCP server over stdio",
    "An agent",
    "One run, streamed",
    "The stored transcript",
    "The audit trail",
    "What it took",
    "The trace, as the tracing backend received it",
)


@pytest.mark.timeout(400)
@pytest.mark.requirement("A2", "A4", "B3", "C5", "D1", "G1")
@pytest.mark.skipif(not GIT_SERVER.exists(), reason="needs `make demo`")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason=beyond("this checkout has no history"))
def test_the_demo_shows_a_run_with_its_transcript_audit_and_trace() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.run"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    out = done.stdout
    places = [out.find(section) for section in SECTIONS]
    assert -1 not in places
    assert places == sorted(places)
    ends = [*places[1:], None]
    parts = {title: out[start:end] for title, start, end in zip(SECTIONS, places, ends, strict=True)}
    assert "protocol 2026-07-28" in parts["A real MCP server over stdio"]
    streamed = parts["One run, streamed"]
    assert all(f"turn {number}" in streamed for number in (1, 2, 3, 4))
    assert "✗" not in streamed
    for tool in ("mcp__git__git_log", "mcp__git__git_status", "code_execution", "mcp__git__git_show"):
        assert f"✓ {tool}" in streamed
        assert f"calls {tool}" in parts["The stored transcript"]
        assert f"{tool} answers: " in parts["The stored transcript"]
    newest = subprocess.run(["git", "log", "-1", "--format=%H"], cwd=ROOT, capture_output=True, text=True, check=True)
    answer = streamed.rpartition("turn 4")[2]
    assert newest.stdout[:7] in answer
    assert "the first file it touches is none" not in " ".join(answer.split())
    assert parts["The audit trail"].count("tool.executed") == 4
    assert "run.completed" in parts["The audit trail"]
    assert "4 turns, 4 tool calls" in parts["What it took"]
    trace = parts["The trace, as the tracing backend received it"]
    for span in ("mcp_tool__git_log", "mcp_tool__git_show", "tool__code_execution", "generation"):
        assert span in trace
    assert "Traceback" not in done.stderr
