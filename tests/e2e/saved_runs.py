"""Stored runs of every kind, made by a real service: `python -m tests.e2e.saved_runs --write` saves
those of the schema's revision under tests/fixtures/saved_runs; `--source DIR` lets an older
checkout's `src` make them instead."""

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.identity.api_key import hash_token
from infrastructure.persistence.schema.revision import plain_engine
from tests.e2e.processes import until
from tests.e2e.saved_rows import SavedRuns, stored_tables
from tests.e2e.service import ISOLATED_PYTHON, ROOT, TERMINAL, Json, Service, a_turn, starting
from tests.saved_schema import FOLDER

SECRET_KEY = "a-passphrase-for-saved-runs"
CANARY = "Nightingale-7183-Kestrel"
ASKING_SERVER = ROOT / "tests" / "integration" / "mcp" / "servers" / "asking_server.py"
WATCHED_SERVER = ROOT / "tests" / "e2e" / "servers" / "watched_server.py"
NOTE, LOOK, REFUSE = "mcp__watched__note", "mcp__watched__look", "mcp__watched__refuse"
MAIL = {"subject": "Hello", "body": "There.", "to": "you@example.com"}


def scripts(home: Path) -> dict[str, list[Json]]:
    """The turns of each agent's model, by its name. Held calls wait for HOME/gate."""
    gate = {"text": "held", "gate": str(home / "gate")}
    return {
        "talker": [a_turn("Hello.")],
        "looker": [a_turn("I look.", (LOOK, {"text": "around"}), ("no_such_tool", {})), a_turn("I saw it.")],
        "mailer": [a_turn("Your mail.", ("send_email", MAIL), (LOOK, {"text": "first"})), a_turn("It was shown.")],
        "fails": [a_turn(f"Try {number}.", (REFUSE, {"text": "no"})) for number in range(6)],
        "endless": [a_turn(f"Turn {number}.", (LOOK, {"text": str(number)})) for number in range(6)],
        "holder": [
            a_turn("I hold.", ("mcp__watched__held_look", gate), ("mcp__watched__held_note", gate)),
            a_turn("Let go."),
        ],
        "careful": [a_turn("May I?", (NOTE, {"text": "allowed"})), a_turn("Thank you.")],
        "guarded": [a_turn(f"The word is {CANARY}, keep it.")],
        "halted": [a_turn("I note.", (NOTE, {"text": "never"}))],
        "painter": [a_turn("", ("mcp__painter__paint", {"thing": "door"})), a_turn("Painted.")],
        "computes": [a_turn("I compute.", ("code_execution", {"code": "6 * 7"}), (LOOK, {})), a_turn("Computed.")],
        "reader": [a_turn("I search.", ("source_query", {"query": "walrus"})), a_turn("Read.")],
    }


def write_scripts(home: Path) -> None:
    """The models of all agents, as files of HOME."""
    (home / "scripted").mkdir(exist_ok=True)
    for name, turns in scripts(home).items():
        (home / "scripted" / f"{name}.yaml").write_text(json.dumps({"turns": turns}), encoding="utf-8")


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Makes the runs, each named by its story."""

    service: Service
    runs: dict[str, str] = field(default_factory=dict)

    def make(self) -> None:
        """All stories; the last run is still under way."""
        for story in _STORIES:
            story(self)

    def agent(self, name: str, **settings: object) -> None:
        """An agent with the model of its name."""
        self.service.agent(name, f"scripted:{name}.yaml", **settings)

    def run(self, story: str, agent: str | None = None, status: str = "", path: str = "/runs", **body: object) -> Json:
        """A run of this story until it ends or waits."""
        sent = {"agent": agent or story, "input": f"Begin: {story}.", **body}
        run: Json = self.service.call("POST", f"{path}/wait", sent)["run"]
        assert run["status"] == status, run
        self.runs[story] = run["id"]
        return run

    def answers(self) -> Json:
        """What the API says of it."""
        found: Json = {}
        for run_id in self.runs.values():
            run = self.service.call("GET", f"/runs/{run_id}")
            found[f"/runs/{run_id}"] = run
            if run["status"] in TERMINAL:
                found[f"/threads/{run['thread_id']}/messages?limit=100"] = None
                found[f"/runs/{run_id}/events?limit=100"] = None
        listed = [f"/{name}?limit=100" for name in _LISTS]
        for path in [*(path for path, answer in found.items() if answer is None), *listed]:
            found[path] = self.service.call("GET", path)
            assert found[path]["next_cursor"] is None, path
        found["/audit-events"] = audit_entries(self.service)
        return found


def audit_entries(service: Service) -> list[Json]:
    """All that the audit trail has, newest first."""
    found: list[Json] = []
    cursor = ""
    while True:
        page = service.call("GET", f"/audit-events?limit=100{cursor}")
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def _completed(recorder: Recorder) -> None:
    service = recorder.service
    command = [*ISOLATED_PYTHON, str(WATCHED_SERVER), str(service.home / "watched.log")]
    service.server("watched", *command, trusted=True)
    recorder.agent("talker")
    recorder.agent("looker", mcp_servers=["watched"])
    first = recorder.run("looker", status="completed", metadata={"ticket": "17"})
    recorder.run("talker", status="completed", path=f"/threads/{first['thread_id']}/runs")
    key = {"Idempotency-Key": "only-once"}
    service.client.post("/runs/wait", json={"agent": "talker", "input": "Once."}, headers=key).raise_for_status()


def _ended_otherwise(recorder: Recorder) -> None:
    recorder.agent("fails", mcp_servers=["watched"])
    recorder.run("fails", status="failed")
    recorder.agent("endless", mcp_servers=["watched"])
    recorder.run("endless", status="incomplete", limits={"max_turns": 2})


def _waiting_for_the_client(recorder: Recorder) -> None:
    recorder.agent("mailer", mcp_servers=["watched"], tools=["send_email"])
    recorder.run("mailer", status="requires_action")
    left = recorder.run("cancelled", "mailer", status="requires_action")
    recorder.service.call("POST", f"/runs/{left['id']}/cancel")
    back = recorder.run("rolled back", "mailer", status="requires_action")
    path = f"/threads/{back['thread_id']}/runs"
    recorder.run("instead", "talker", status="completed", path=path, multitask_strategy="rollback")


def _secret(recorder: Recorder) -> None:
    recorder.service.call("POST", "/secrets", {"name": "word", "value": "a secret value"})


def _asking(recorder: Recorder) -> None:
    recorder.service.server("painter", sys.executable, str(ASKING_SERVER), elicitation="ask")
    recorder.agent("painter", mcp_servers=["painter"])
    recorder.run("painter", status="requires_action")


def _halted(recorder: Recorder) -> None:
    recorder.agent("halted", mcp_servers=["watched"], tool_policies={NOTE: {"decision": "deny", "on_block": "halt"}})
    recorder.run("halted", status="halted")


def _model_provider(recorder: Recorder) -> None:
    provider = {"name": "elsewhere", "kind": "openai", "base_url": "https://models.example.com/v1"}
    recorder.service.call("POST", "/model-providers", {**provider, "api_key": "not-a-key"})


def _careful(recorder: Recorder) -> None:
    policies = {NOTE: {"decision": "require_approval"}}
    recorder.agent("careful", mcp_servers=["watched"], tool_policies=policies)
    recorder.run("careful", status="requires_action")
    denied = recorder.run("denied", "careful", status="requires_action")
    decisions = [{"tool_call_id": call["id"], "decision": "deny", "reason": "No."} for call in denied["pending"]]
    recorder.service.call("POST", f"/runs/{denied['id']}/resume", {"approvals": decisions})
    assert recorder.service.wait(denied["id"])["run"]["status"] == "completed"


def _with_sources(recorder: Recorder) -> None:
    service = recorder.service
    recorder.agent("computes", mcp_servers=["watched"], tools=["code_execution"])
    recorder.run("computes", status="completed")
    thread = service.call("POST", "/threads")["id"]
    text = b"Customers may return every walrus within thirty days.\n"
    service.client.post(f"/threads/{thread}/sources", files={"file": ("terms.md", text)}).raise_for_status()
    recorder.agent("reader", tools=["source_query"])
    recorder.run("reader", status="completed", path=f"/threads/{thread}/runs")


def _guarded(recorder: Recorder) -> None:
    recorder.agent("guarded", canary_tokens=[{"id": "vault", "token": CANARY}])
    recorder.run("guarded", status="halted")


def _under_way(recorder: Recorder) -> None:
    service = recorder.service
    recorder.agent("holder", mcp_servers=["watched"])
    recorder.runs["holder"] = service.start_run("holder")
    log = service.home / "watched.log"
    until(lambda: log.read_text().count("called held_") == 2, what="two held calls")
    thread = service.call("GET", f"/runs/{recorder.runs['holder']}")["thread_id"]
    queued = service.call("POST", f"/threads/{thread}/runs", {"agent": "talker", "input": "Next."}, expect=202)
    recorder.runs["queued"] = queued["id"]


_STORIES: tuple[Callable[[Recorder], None], ...] = (
    _completed,
    _ended_otherwise,
    _waiting_for_the_client,
    _secret,
    _asking,
    _halted,
    _model_provider,
    _careful,
    _with_sources,
    _guarded,
    _under_way,
)
"""What a later revision adds to the stored form of runs goes here."""
_LISTS = ("agents", "api-keys", "threads", "secrets", "model-providers", "approvals")
"""What is asked for beside the runs."""


def places(home: Path) -> Mapping[str, str]:
    """What differs between machines, longest first: what stands in the files for it."""
    return {"python": sys.executable, "home": str(home), "tests": str(ROOT / "tests")}


def token_of(revision: str) -> str:
    """The token of the first key of the service that made a file. Only its hash is stored, as
    ever."""
    return f"dgm_saved-runs-of-{revision}"


def record(folder: Path, source: Path | None = None) -> Path:
    """Make the runs in a home of their own, kill the service, and save what it has stored."""
    with tempfile.TemporaryDirectory(prefix="saved-runs-") as base, contextlib.ExitStack() as stack:
        home = Path(base) / "home"
        settings = {"DRAGOMAN_SECRET_KEY": SECRET_KEY}
        if source is not None:
            settings["PYTHONPATH"] = str(source)
        service = stack.enter_context(starting(home, **settings))
        engine = plain_engine(f"sqlite:///{home / 'dragoman.db'}")
        stack.callback(engine.dispose)
        with engine.connect() as connection:
            revision = str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())
        write_scripts(home)
        recorder = Recorder(service=service)
        recorder.make()
        answers = recorder.answers()
        service.process.kill()
        service.process.wait()
        token = token_of(revision)
        with engine.connect() as connection:
            tables = stored_tables(connection, token_hash=hash_token(token))
        saved = SavedRuns(revision=revision, token=token, runs=recorder.runs, answers=answers, tables=tables)
        return saved.write(folder, places(home))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.saved_runs", description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="save under tests/fixtures/saved_runs")
    parser.add_argument("--source", type=Path, help="the src folder of the version that makes the runs")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    os.umask(0o022)
    print(record(arguments.folder, arguments.source))  # noqa: T201


if __name__ == "__main__":
    main()
