"""The client for TypeScript in Node.js, against a real service."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client_story import LETTER, a_staff, first_responses_lost, streams_cut_early
from tests.e2e.cutting import cutting
from tests.e2e.service import ROOT, Service, serving
from tests.e2e.test_gateway_conformance import NODES

CLIENT = ROOT / "clients" / "typescript"
TYPESCRIPT = CLIENT / "node_modules" / "typescript" / "bin" / "tsc"
PROGRAM = Path(__file__).parent / "clients" / "typescript_client.mjs"

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.requirement("E1", "U5"),
    pytest.mark.skipif(not (NODES and TYPESCRIPT.exists()), reason="needs `make clients`"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is published."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    command = [str(NODES[-1]), str(TYPESCRIPT), "--project", str(CLIENT), "--outDir", str(folder / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert (folder / "dist" / "index.d.ts").exists()
    return folder / "dist" / "index.js"


@pytest.fixture(scope="module")
def staffed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("clients") / "home") as service:
        a_staff(service)
        yield service


def story(built: Path, url: str, key: str, name: str) -> Any:
    """What a story of the program tells."""
    command = [str(NODES[-1]), str(PROGRAM), built.as_uri(), url, key, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_stream_that_is_cut_again_and_again_gives_every_event_once(built: Path, staffed: Service) -> None:
    with cutting(staffed.url, streams_cut_early()) as relay:
        told = story(built, relay.url, staffed.key, "streams")
    assert len(relay.cut) > 5
    assert told["events"] == staffed.events(told["id"])
    assert told["status"] == "completed"


def test_a_stream_ends_where_the_run_waits_and_is_taken_up_there(built: Path, staffed: Service) -> None:
    told = story(built, staffed.url, staffed.key, "pauses")
    assert (told["waits"], told["status"]) == ("requires_action", "completed")
    assert told["events"] == staffed.events(told["id"])
    assert (told["again"]["name"], told["again"]["code"]) == ("Conflict", "approval_decided")
    assert told["states"] == ["approved", "denied"]


def test_a_client_tool_is_settled_by_its_result(built: Path, staffed: Service) -> None:
    told = story(built, staffed.url, staffed.key, "letters")
    assert told["asked"] == {"status": "requires_action", "name": "send_email", "params": LETTER}
    assert told["refused"]["name"] == "DragomanError"
    assert (told["status"], told["output"]) == ("completed", "It was sent.")
    assert told["roles"] == ["user", "assistant", "tool", "assistant"]


def test_a_start_whose_response_is_lost_starts_one_run(built: Path, staffed: Service) -> None:
    with cutting(staffed.url, first_responses_lost("POST /v1/runs ", "GET /v1/runs/")) as relay:
        told = story(built, relay.url, staffed.key, "lost")
    assert told["runs"] == [told["id"]]
    assert len(relay.cut) == 2


def test_files_are_uploaded_and_lists_read_to_their_end(built: Path, staffed: Service) -> None:
    told = story(built, staffed.url, staffed.key, "files")
    assert (told["source"]["name"], told["source"]["kind"]) == ("bees.md", "markdown")
    assert told["listed"] == told["order"]
    assert told["text"] == "# Bees\nThey hum.\n"
    assert told["metadata"] == {"ticket": "T-7"}
    assert told["texts"] == [f"message {number}" for number in range(7)]
    assert told["deleted"]["name"] == "NotFound"


def test_agents_and_servers_are_saved_by_name(built: Path, staffed: Service) -> None:
    told = story(built, staffed.url, staffed.key, "named")
    assert told == {"versions": [1, 2], "servers": ["watched"], "tested": True}


def test_workflow_runs_are_started_answered_followed_and_cancelled(built: Path, staffed: Service) -> None:
    cut = first_responses_lost("POST /v1/workflows/", "GET /v1/workflow-runs/")
    with cutting(staffed.url, cut) as relay:
        told = story(built, relay.url, staffed.key, "workflows")
    assert len(relay.cut) == 2
    assert told["asked"] == ["person"]
    assert (told["status"], told["output"]) == ("completed", ["Publish", True])
    assert (told["events"][-1], told["again"]) == ("workflow.completed", told["events"][2:])
    assert (told["waits"], told["refused"]["name"]) == ("requires_action", "Invalid")
    assert (told["cancelled"], told["listed"]) == ("cancelled", told["ids"])


def test_errors_say_what_the_service_says(built: Path, staffed: Service) -> None:
    told = story(built, staffed.url, staffed.key, "errors")
    assert (told["missing"]["name"], told["missing"]["status"], told["missing"]["code"]) == (
        "NotFound",
        404,
        "run_not_found",
    )
    assert {fault["path"] for fault in told["invalid"]["errors"]} == {"input", "inputs"}
    assert told["stranger"]["name"] == "Unauthenticated"
    assert told["lost"]["name"] == "ConnectionLost"
    assert all(failure["known"] for failure in told.values())
