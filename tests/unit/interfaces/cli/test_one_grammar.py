"""NOUN VERB: runs by verbs, versions of agents, threads, usage, organization, console."""

import pytest

from domain.json_value import JsonObject
from interfaces.cli.run_group import refuse_commands
from interfaces.http.api_keys.views import ApiKeyView, SignInLinkView
from interfaces.http.approvals.views import ApprovalView
from interfaces.http.mcp_servers.views import McpServerView
from interfaces.http.organization.views import OrganizationView
from interfaces.http.threads.views import ListedThreadView, ThreadView
from interfaces.http.usage.views import UsageView
from tests.unit.interfaces.cli.fake_service import FakeService, agent_document, problem, run_document, whole

pytestmark = pytest.mark.requirement("U4")


def page(*entries: JsonObject, more: str | None = None) -> JsonObject:
    return {"data": [*entries], "next_cursor": more}


def test_runs_are_listed_with_the_names_of_their_agents() -> None:
    service = (
        FakeService()
        .on("GET", "/v1/runs", page(run_document(), run_document(agent_id="agt_2"), more="c"))
        .on("GET", "/v1/agents", page(agent_document()))
        .on("GET", "/v1/agents/guide", agent_document())
    )
    outcome = service.run("run", "list", "--agent", "guide", "--status", "completed", "--limit", "2")
    assert [line.split()[:3] for line in outcome.out.splitlines()[1:]] == [
        ["run_1", "completed", "guide"],
        ["run_1", "completed", "agt_2"],
    ]
    [asked] = [request for request in service.requests if request.url.path == "/v1/runs"]
    assert dict(asked.url.params) == {"agent_id": "agt_1", "status": "completed", "limit": "2"}
    assert "--limit" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["lst"], "run list"), (["ls"], "run list"), (["List"], "run list"), (["stop"], "run cancel"),
        (["shwo", "run_1"], "run show"), (["cancle", "run_1"], "run cancel"), (["--agent", "guide", "list"], "run list"),
        (["--json", "show"], "run show"), (["run_0123"], "run show run_0123"), (["thr_0123"], "thread show thr_0123"),
    ],
)  # fmt: skip
def test_a_message_is_never_a_verb_or_nearly_one(arguments: list[str], meant: str) -> None:
    service = FakeService()
    outcome = service.run("run", *arguments)
    assert outcome.exit_code == 2
    assert f"dragoman {meant}" in outcome.err
    assert service.requests == []


@pytest.mark.parametrize("text", ["hello", "Hi", "list my runs", "What is a run_0123?", "no", "thanks", "weather"])
def test_other_messages_are_messages(text: str) -> None:
    refuse_commands([text])


def test_a_message_that_is_a_verb_is_sent_by_start() -> None:
    service = FakeService().on("POST", "/v1/runs", problem(403, "forbidden", "No."))
    service.run("run", "start", "list", "--agent", "guide")
    assert service.sent("POST", "/v1/runs") == [{"agent": "guide", "input": "list"}]


def test_the_former_names_of_run_commands_still_work_and_are_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    shown: JsonObject = {"run": run_document(), "messages": []}
    service = FakeService().on("GET", "/v1/runs/run_1/wait", shown)
    assert service.run("run-show", "run_1").out == service.run("run", "show", "run_1").out
    FakeService().run("--help")
    assert "run-show" not in capsys.readouterr().out


def test_a_failed_run_is_continued_by_the_service() -> None:
    path = "/v1/runs/run_1/retry"
    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1", run_document("failed"))
        .on("POST", path, problem(409, "run_not_newest", "Run run_1 is not the newest of its thread."))
    )
    refused = service.run("run", "retry", "run_1")
    assert service.sent("POST", path) == [None]
    assert (refused.exit_code, "not the newest" in refused.err) == (1, True)


def test_a_retried_run_has_the_input_the_agent_and_the_thread_of_the_first() -> None:
    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1", run_document("completed"))
        .on("POST", "/v1/threads/thr_1/runs", problem(403, "forbidden", "No."))
    )
    service.run("run", "retry", "run_1")
    sent = {"agent_id": "agt_1", "input": [{"type": "text", "text": "hi"}]}
    assert service.sent("POST", "/v1/threads/thr_1/runs") == [sent]


def test_an_agent_is_rolled_back_to_the_settings_of_an_earlier_version() -> None:
    versions = page(agent_document(), agent_document(version=2, instructions="Be long.", model="scripted:old.yaml"))
    service = (
        FakeService()
        .on("GET", "/v1/agents/guide", agent_document())
        .on("GET", "/v1/agents/agt_1/versions", versions)
        .on("PATCH", "/v1/agents/agt_1", agent_document(version=4))
    )
    outcome = service.run("agent", "rollback", "guide")
    [sent] = service.sent("PATCH", "/v1/agents/agt_1")
    assert isinstance(sent, dict)
    assert (sent["instructions"], sent["model"]) == ("Be long.", "scripted:old.yaml")
    assert {"id", "name", "version", "canary_tokens", "created_at"}.isdisjoint(sent)
    assert "version 2 again, at version 4" in outcome.err
    refused = service.run("agent", "rollback", "guide", "--to", "9")
    assert (refused.exit_code, "dragoman agent versions guide" in refused.err) == (2, True)


@pytest.mark.parametrize(("verb", "enabled"), [("enable", True), ("disable", False)])
def test_an_agent_is_switched(verb: str, enabled: bool) -> None:
    service = FakeService().on("PATCH", "/v1/agents/guide", agent_document(enabled=enabled))
    assert f"guide is {verb}d" in service.run("agent", verb, "guide").err
    assert service.sent("PATCH", "/v1/agents/guide") == [{"enabled": enabled}]


def test_versions_are_listed_and_agents_threads_and_servers_deleted() -> None:
    service = FakeService().on("GET", "/v1/agents/guide/versions", page(agent_document()))
    for path in ("agents/guide", "threads/thr_1", "mcp-servers/time"):
        service.on("DELETE", f"/v1/{path}", {})
    assert service.run("agent", "versions", "guide").out.splitlines()[1].split()[0] == "3"
    for arguments in (
        ("agent", "delete", "guide"),
        ("thread", "delete", "thr_1"),
        ("mcp", "delete", "time"),
        ("mcp", "remove", "time"),
    ):
        assert "Deleted" in service.run(*arguments).err


def test_a_thread_is_created_with_metadata_and_its_id_printed() -> None:
    thread = whole(ThreadView, {"id": "thr_1", "created_at": "t"})
    listed = whole(ListedThreadView, {"id": "thr_1", "created_at": "t", "opening": "Hello"})
    service = FakeService().on("POST", "/v1/threads", thread).on("GET", "/v1/threads", page(listed))
    assert service.run("thread", "create", "--metadata", "customer=acme", "--metadata", "n=1").out == "thr_1\n"
    assert service.sent("POST", "/v1/threads") == [{"metadata": {"customer": "acme", "n": 1}}]
    assert service.run("thread", "list").out.splitlines()[1].split() == ["thr_1", "Hello", "t"]


def test_fields_of_a_server_are_changed() -> None:
    server = whole(McpServerView, {"slug": "time"})
    service = FakeService().on("PATCH", "/v1/mcp-servers/time", server)
    assert service.run("mcp", "update", "time", "timeout_s=60", "trusted=true", "version=1.0").exit_code == 0
    assert service.sent("PATCH", "/v1/mcp-servers/time") == [{"timeout_s": 60, "trusted": True, "version": "1.0"}]


def test_usage_is_summed_by_what_is_asked_for() -> None:
    entry = whole(
        UsageView, {"agent_id": "agt_1", "cost_usd": 0.5, "input_tokens": 7, "output_tokens": 3, "model_calls": 2}
    )
    service = FakeService().on("GET", "/v1/usage", page(entry)).on("GET", "/v1/agents", page(agent_document()))
    outcome = service.run("usage", "--by", "agent", "--since", "2026-11-01")
    assert outcome.out.splitlines()[1].split()[:5] == ["guide", "$0.5000", "7", "3", "2"]
    assert service.requests[0].url.params["by"] == "agent"
    assert service.run("usage", "--by", "week").exit_code == 2


def test_usage_by_person_has_their_names() -> None:
    used = {"cost_usd": 0.5, "input_tokens": 7, "output_tokens": 3, "model_calls": 2}
    entries = [whole(UsageView, {"started_by": starter, **used}) for starter in ("usr_1", "schedule:sch_1", "key_1")]
    service = FakeService().on("GET", "/v1/usage", page(*entries))
    service.on("GET", "/v1/users", page({"id": "usr_1", "name": "Ada"}))
    service.on("GET", "/v1/schedules", page({"id": "sch_1", "name": "nightly"}))
    outcome = service.run("usage", "--by", "person")
    assert [line.split()[0] for line in outcome.out.splitlines()[1:]] == ["Ada", "nightly", "key_1"]


@pytest.mark.requirement("A10")
def test_usage_by_tool_has_the_calls_of_the_most_called_first() -> None:
    calls = {"failed_tool_calls": 1, "blocked_tool_calls": 1, "tool_ms": 800}
    entries = [whole(UsageView, {"tool": tool, "tool_calls": count, **calls}) for tool, count in (("a", 1), ("b", 5))]
    service = FakeService().on("GET", "/v1/usage", page(*entries))
    outcome = service.run("usage", "--by", "tool")
    assert [line.split() for line in outcome.out.splitlines()[1:]] == [
        ["b", "5", "1", "1", "200"],
        ["a", "1", "1", "1"],
    ]


def test_the_settings_of_the_organization_are_shown_and_unknown_ones_refused() -> None:
    organization = whole(
        OrganizationView,
        {
            "id": "org_1",
            "name": "acme",
            "daily_budget_usd": 5.0,
            "user_limits": {"rate_limit": {"calls": 60, "per_s": 60.0}, "max_active_runs": 3},
            "limits_of_users": {"usr_1": {"rate_limit": None, "max_active_runs": 9}},
        },
    )
    service = FakeService().on("GET", "/v1/organization", organization)
    shown = service.run("org", "show").out
    assert "$5.00" in shown
    assert "60 requests per 60 s, 3 active runs each; usr_1 9 active runs" in " ".join(shown.split())
    refused = service.run("org", "set", "daily_budget=1")
    assert refused.exit_code == 2
    assert "daily_budget_usd" in refused.err


def test_an_approval_is_shown_with_all_its_arguments_and_the_command_that_decides() -> None:
    approval = whole(ApprovalView, {"id": "apr_1", "state": "pending", "tool": "send", "arguments": {"to": "x" * 300}})
    outcome = FakeService().on("GET", "/v1/approvals/apr_1", approval).run("approval", "show", "apr_1")
    assert "x" * 300 in outcome.out
    assert "dragoman approval decide apr_1" in outcome.err


def test_an_approval_is_shown_with_the_names_of_its_agent_and_of_people() -> None:
    decided = {"decided_at": "2026-01-01T12:00:00.000000Z", "decided_by": "key_2", "requested_by": "schedule:sch_1"}
    approval = whole(ApprovalView, {"id": "apr_1", "state": "denied", "agent_id": "agt_1", "arguments": {}, **decided})
    key = whole(ApiKeyView, {"id": "key_2", "name": "night shift"})
    service = (
        FakeService()
        .on("GET", "/v1/approvals/apr_1", approval)
        .on("GET", "/v1/agents", page(agent_document()))
        .on("GET", "/v1/api-keys", page(key))
    )
    shown = service.run("approval", "show", "apr_1").out
    assert "guide, version" in shown
    assert "by night shift" in shown
    assert "schedule:sch_1" in shown


def test_the_link_of_the_console_is_printed_where_there_is_no_browser() -> None:
    link = whole(SignInLinkView, {"path": "/console/sign-in/c0de", "expires_at": "t"})
    outcome = FakeService().on("POST", "/v1/sign-in-links", link).run("open")
    assert outcome.out.endswith("/console/sign-in/c0de\n")
    assert "once" in outcome.err
