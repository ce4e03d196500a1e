"""Typical mistakes at the terminal, beside a running service: each ends with a failure, without a
traceback, and says what to do next."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interfaces.cli.command_table import COMMANDS
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.processes import until
from tests.e2e.service import a_turn, serving

pytestmark = pytest.mark.requirement("U4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where mistakes are made: commands beside the service, files, and ids of what there is."""

    dragoman: DragomanHere
    directory: Path
    ids: dict[str, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("mistakes")
    home = directory / "home"
    (directory / "broken.yaml").write_text("name: [", encoding="utf-8")
    (directory / "typo.yaml").write_text("name: x\nmodle: scripted:hello.yaml\n", encoding="utf-8")
    (directory / "no_model.yaml").write_text("name: x\nmodel: gpt-5-mini\n", encoding="utf-8")
    (directory / "tools.yaml").write_text("[{name: a, description: b, parameters: {type: object}}]", encoding="utf-8")
    (directory / "list.json").write_text("[]", encoding="utf-8")
    (directory / "graph.yaml").write_text("name: g\nnodes: [{id: a, kind: agnet, config: {}}]\n", encoding="utf-8")
    with serving(home) as service:
        service.agent("guide", service.script("hello", a_turn("Hello.")))
        run = service.run("guide")["run"]
        service.server("time", "true")
        ids = {"RUN": run["id"], "THREAD": run["thread_id"], "AGENT": run["agent_id"], "HERE": str(directory)}
        yield Place(dragoman=DragomanHere(home), directory=directory, ids=ids)


MISTAKES = [
    # commands and options
    ("rnu hello", "Did you mean 'run'? Try"),
    ("agents list", "Did you mean 'agent'"),
    ("agent lst", "Did you mean 'list'"),
    ("schedule create morning", "Did you mean 'add'?"),
    ("agent rm guide", "Did you mean 'delete'?"),
    ("agent describe guide", "Did you mean 'show'?"),
    ("acp --agent", "Try `dragoman acp --help`"),
    ("mcp uninstall nothing", "dragoman mcp list"),
    ("archive verfy nowhere", "Did you mean 'verify'?"),
    ("archive verify nowhere", "nowhere is not a directory."),
    ("agent", "Commands:"),
    ("mcp", "Commands:"),
    ("run", "dragoman run"),
    ("run lst", "dragoman run list"),
    ("run ls", "dragoman run list"),
    ("run stop", "dragoman run cancel"),
    ("run cancle RUN", "dragoman run cancel"),
    ("run --agent guide show", "dragoman run show"),
    ("run RUN", "dragoman run show"),
    ("run THREAD", "dragoman thread show"),
    ("run hello --agnt guide", "--agent"),
    ("run hello --agent guide --server time", "mcp_servers"),
    ("run hello", "--model PROVIDER:NAME"),
    ("run hello --agent giude", "Did you mean 'guide'"),
    ("run hello --agent nothing.yaml", "nothing.yaml"),
    ("run hello --agent HERE/broken.yaml", "line"),
    ("run hello --agent guide --model gpt-5-mini", "scripted:hello.yaml"),
    ("run hello --agent guide --thread RUN", "dragoman run show"),
    ("run hello --model openai:gpt-5-mini", "dragoman provider add openai --kind openai"),
    ("run hello --agent guide --limit turns=3", "max_turns"),
    ("run hello --model mistral:large", "dragoman provider add mistral"),
    ("run hello --model scripted:hi.yaml", "scripted:hello.yaml"),
    ("run hello --agent guide --file HERE/missing.pdf", "No such file"),
    ("run list --status done", "completed"),
    ("run list --agent giude", "Did you mean 'guide'"),
    ("run list --limit 0", "--help"),
    ("run show", "--help"),
    ("run show run_0123", "dragoman run list"),
    ("run show THREAD", "dragoman thread show"),
    ("run show guide", "dragoman run list"),
    ("run cancel", "--agent NAME"),
    ("run cancel RUN --all", "Give the ID of a run, or one of"),
    ("run cancel --agent giude", "Did you mean 'guide'"),
    ("run resume RUN", "dragoman run show"),
    ("run resume RUN --result oops", "CALL_ID=TEXT"),
    ("run retry run_0123", "dragoman run list"),
    # agents
    ("agent show giude", "Did you mean 'guide'"),
    ("agent delete nobody", "dragoman agent list"),
    ("agent rollback guide --to 9", "dragoman agent versions guide"),
    ("agent rollback guide", "dragoman agent versions guide"),
    ("agent apply HERE/typo.yaml", "did you mean 'model'"),
    ("agent apply HERE/no_model.yaml", "PROVIDER:NAME"),
    ("agent apply HERE/list.json", "at least name and model"),
    ("agent apply HERE/missing.yaml", "No such file"),
    # servers and tools
    ("mcp add clock", "--url URL"),
    ("mcp add clock --package mcp-server-time", "--kind"),
    ("mcp add clock --kind npn --package x", "did you mean 'npm'?"),
    ("mcp add time -- true", "dragoman mcp update time"),
    ("mcp add Clock! -- true", "[a-z0-9]"),
    ("mcp add x --url http://x --header oops", "NAME=VALUE"),
    ("mcp show tiem", "Did you mean 'time'"),
    ("mcp test tiem", "dragoman mcp list"),
    ("mcp update time timeout_s", "FIELD=VALUE"),
    ("mcp update time timeot_s=5", "timeout_s"),
    ("mcp import HERE/broken.yaml", "is not JSON"),
    ("tool explain mcp__time__now --agent giude", "Did you mean 'guide'"),
    # the rest
    ("chat", "--agent"),
    ("chat --agent giude", "Did you mean 'guide'"),
    ("usage --by week", "day, agent, model"),
    ("usage --since yesterday", "2026"),
    ("thread show thr_0123", "dragoman thread list"),
    ("thread show RUN", "dragoman run show"),
    ("approval decide apr_0123", "--approve or --deny"),
    ("approval decide apr_0123 --approve", "dragoman approval list"),
    ("approval list --state open", "pending"),
    ("audit list --since yesterday", "2h"),
    ("key create ci --role king", "viewer"),
    ("key revoke key_0123", "dragoman key list"),
    ("org set nosuchfield=1", "retention_days"),
    ("schedule add x --cron 61 --agent guide --input hi", "minute"),
    ("schedule show mornin", "dragoman schedule list"),
    ("workflow run answres", "dragoman workflow list"),
    ("workflow validate HERE/graph.yaml", "did you mean 'agent'"),
    ("provider add x --kind opnai --no-key", "openai"),
    ("init --yes --server tiem", "time"),
    # people, editors, the gateway, queues and providers
    ("idp add company --issuer http://login.example.com --client-id x --public", "https://"),
    ("idp add company --issuer https://login.example.com --client-id x", "--public"),
    ("idp add company --issuer https://login.example.com --client-id x --public --rule oops", "groups=agents:operator"),
    ("idp add company --issuer https://a.example --client-id x --public --rule groups=a:king", "'viewer', 'runner'"),
    ("idp set company", "--rule"),
    ("idp test compny", "dragoman idp list"),
    ("idp show usr_0123", "dragoman user show usr_0123"),
    ("user role usr_0123 king", "'viewer', 'runner'"),
    ("user impersonate ann --reason x", "dragoman user list"),
    ("user show ann", "dragoman user list"),
    ("user deactivate guide", "dragoman user list"),
    ("group show Leeds", "dragoman group list"),
    ("group create Leads --claim oops", "PROVIDER:CLAIM=VALUE"),
    ("group add Leads usr_0123", "dragoman group list"),
    ("session end ses_0123", "dragoman session list"),
    ("session list --all --of key_1", "--of or --all"),
    ("role show supprt", "dragoman role list"),
    ("role create x --permission runs.strat", "'runs.start'"),
    ("role set support", "--permission"),
    ("account connect time", "dragoman login"),
    ("account disconnect time", "dragoman login"),
    ("acp", "dragoman acp --help"),
    ("acp --agent giude", "Did you mean 'guide'"),
    ("gateway config --client claude --agent guide", "Did you mean 'claude-code'"),
    ("gateway config --client codex --agent giude", "Did you mean 'guide'"),
    ("gateway open --run run_0123", "dragoman run list"),
    ("gateway open --agent guide --run RUN", "exactly one of"),
    ("gateway revoke gws_0123", "dragoman gateway list"),
    ("queue", "Commands:"),
    ("queue cancel", "--all"),
    ("queue cancel --lane bach", "Did you mean 'batch'"),
    ("queue cancel --agent giude", "Did you mean 'guide'"),
    ("queue requeue --idle 5", "60"),
    ("provider add acme --kind openai", "--no-key"),
    ("provider add acme --kind openai --no-key --base-url models.example.com", "https://"),
    ("provider add acme --kind azure --no-key", "https://RESOURCE"),
    ("provider test acem", "dragoman provider list"),
    ("workflow show wfr_0123", "dragoman workflow run-show wfr_0123"),
    ("workflow run-show RUN", "dragoman run show"),
    ("workflow run-list", "'runs'"),
    ("workflow apply HERE/typo.yaml", "nodes: is required"),
    ("mcp add x --kind sse --url https://x.example --declared-tools HERE/tools.yaml", "kind sse"),
    ("mcp add x --url https://x.example --declared-tools HERE/list.json", "name, description and parameters"),
    ("mcp approve time nothing", "dragoman mcp tools time"),
    ("mcp resources time", "dragoman agent apply FILE"),
    ("mcp resources tiem", "Did you mean 'time'"),
    ("mcp prompts time greet Ada", "ARGUMENT=VALUE"),
    ("mcp prompts time --agent giude", "Did you mean 'guide'"),
    ("run list --count --status done", "completed"),
    ("secret set TOKEN", "printenv TOKEN | dragoman secret set TOKEN"),
    ("source delete src_0123", "dragoman source list THREAD"),
    ("webhook retry whk_0123", "dragoman webhook list RUN"),
    ("org set retention_days=soon", "must be a whole number"),
    ("serve --port 99999", "--help"),
    ("serve", "dragoman open"),
]


def test_sixty_typical_mistakes_are_made_here() -> None:
    assert len({typed for typed, _ in MISTAKES}) >= 60


def test_each_group_of_commands_is_mistyped_here() -> None:
    groups = {command.name for command in COMMANDS if command.is_group}
    assert groups - {typed.split()[0] for typed, _ in MISTAKES} == {"db"}  # its commands open the database themselves


@pytest.mark.parametrize(("typed", "next_step"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_is_named_with_a_next_step(
    place: Place, typed: str, next_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    words = [place.ids.get(word, word) for word in typed.split()]
    words = [word.replace("HERE", place.ids["HERE"]) for word in words]
    outcome = place.dragoman.outcome(*words)
    assert outcome.exit_code != 0, outcome.out
    assert outcome.out == "" or typed.startswith("workflow validate"), outcome.out
    assert next_step in outcome.err + outcome.out
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "typed", ["agent list", "run list", "mcp show time", "audit verify", "usage", "agent delete x", "run hi --agent x"]
)
def test_in_a_directory_without_data_a_command_that_reads_makes_none(tmp_path: Path, typed: str) -> None:
    outcome = DragomanHere(tmp_path / "home").outcome(*typed.split())
    assert outcome.exit_code == 1
    assert "There is no service here" in outcome.err
    assert "dragoman serve" in outcome.err
    assert not (tmp_path / "home").exists()


def test_a_key_without_which_a_service_elsewhere_cannot_be_used_is_asked_for(tmp_path: Path) -> None:
    outcome = DragomanHere(tmp_path / "home").outcome("agent", "list", DRAGOMAN_URL="http://127.0.0.1:1")
    assert (outcome.exit_code, "DRAGOMAN_API_KEY" in outcome.err) == (2, True)
    outcome = DragomanHere(tmp_path / "home").outcome(
        "agent", "list", DRAGOMAN_URL="http://127.0.0.1:1", DRAGOMAN_API_KEY="dgm_x"
    )
    assert (outcome.exit_code, "dragoman serve" in outcome.err) == (1, True)
    assert "nothing accepts connections" in outcome.err


@pytest.mark.timeout(700)
def test_the_shell_completes_verbs_names_and_ids(place: Place) -> None:
    def completed(words: str) -> list[str]:
        place_of_last = str(len(words.split(" ")) - 1)
        return place.dragoman.run_in_a_process(
            _DRAGOMAN_COMPLETE="complete_bash", COMP_WORDS=f"{words}", COMP_CWORD=place_of_last
        ).out.split()

    def offered(words: str) -> list[str]:
        """The shell offers nothing while the service has not answered within two seconds."""
        found: list[str] = []

        def is_offered() -> bool:
            found[:] = completed(words)
            return bool(found)

        until(is_offered, 150, what=words)
        return found

    assert completed("dragoman run sh") == ["show"]
    assert offered("dragoman agent show gu") == ["guide"]
    assert offered("dragoman run --agent gu") == ["guide"]
    assert offered("dragoman mcp test ti") == ["time"]
    assert offered("dragoman run show run_") == [place.ids["RUN"]]
