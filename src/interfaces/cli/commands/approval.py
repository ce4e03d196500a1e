"""`dragoman approval`: tool calls that require approval."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from domain.json_value import JsonObject
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.arguments import RUNS
from interfaces.cli.completion import completed
from interfaces.cli.failures import BadUsage, wrong_choice
from interfaces.cli.session import JsonFlag, session_of
from interfaces.cli.terminal import Terminal, one_line, short_json
from interfaces.http.approvals.views import ApprovalView
from interfaces.http.tool_policy_views import ApproversView

approval_app = typer.Typer(
    help="Approve or deny pending tool calls.",
    no_args_is_help=True,
    epilog="Example: dragoman approval list --state pending",
)

ApprovalArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The approval's id, or its beginning.",
        autocompletion=completed("approvals", described_by="tool"),
    ),
]
_ARGUMENTS_LIMIT = 100
_WHY_NOT = {
    "not_an_approver": "You are not among the approvers.",
    "approved_before": "You approved it: others must approve it, too. You may deny it.",
    "person_required": "Several people must approve it, and this key is none. You may deny it.",
    "self_approval_forbidden": "You started the run: another person approves it. You may deny it.",
}
_STATES = ("pending", "approved", "denied", "expired", "stale", "cancelled")


@approval_app.command("list", epilog="Example: dragoman approval list --state pending --json")
def list_approvals(
    context: typer.Context,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help=f"Only these: {', '.join(_STATES)}.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Only approvals of this run.", autocompletion=RUNS)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List approvals, newest first."""
    if state is not None and state not in _STATES:
        raise wrong_choice("--state", state, _STATES)
    wanted: dict[str, str] = {
        name: value for name, value in (("state", state), ("run_id", run_id)) if value is not None
    }

    session_of(context).show_list(
        ApprovalView,
        path_to("approvals"),
        ("id", "state", "tool", "expires", "arguments", "server", "agent", "run"),
        lambda entry, names: (
            entry["id"],
            entry["state"],
            entry["tool"],
            entry["expires_at"],
            short_json(_sent(entry), _ARGUMENTS_LIMIT),
            one_line(_server(entry), _ARGUMENTS_LIMIT),
            names.get(entry["agent_id"], entry["agent_id"]),
            entry["run_id"] or "",
        ),
        names=("agt",),
        query=wanted,
        empty="There are no such approvals." if wanted else "There are no approvals.",
        as_json=as_json,
    )


@approval_app.command("show", epilog="Example: dragoman approval show apr_0123")
def show_approval(context: typer.Context, approval_id: ApprovalArgument, as_json: JsonFlag = False) -> None:
    """Show an approval with all arguments of the call. It says why the call requires approval, and
    what was decided."""
    session = session_of(context)
    session.show_named(
        ApprovalView,
        lambda api: api.get(path_to("approvals", approval_id)),
        lambda approval, names: _show(session.terminal, approval, names),
        names=("agt", "key"),
        as_json=as_json,
    )


def _consents(approval: ApprovalView) -> str:
    needed = approval["approvals_needed"]
    if needed == 1:
        return ""
    given = ", ".join(each["by"] for each in approval["consents"])
    return f"{len(approval['consents'])} of {needed} people{f': {given}' if given else ''}"


def _show(terminal: Terminal, approval: ApprovalView, names: Mapping[str, str]) -> None:
    edited, agent_id = approval["edited_arguments"], approval["agent_id"]

    def by(actor: str | None) -> str:
        return names.get(actor, actor) if actor else ""

    terminal.fields(
        {
            "id": approval["id"],
            "state": approval["state"],
            "tool": approval["tool"],
            "server": _server(approval),
            "cause": approval["cause"],
            "run": approval["run_id"] or "",
            "gateway session": approval["gateway_session_id"] or "",
            "agent": f"{names.get(agent_id, agent_id)}, version {approval['agent_version']}",
            "requested by": by(approval["requested_by"]),
            "approvers": "; ".join(map(_approvers, approval["approvers"])),
            "approved by": _consents(approval),
            "created": approval["created_at"],
            "expires": approval["expires_at"] if approval["decided_at"] is None else "",
            "decided": f"{approval['decided_at']} by {by(approval['decided_by'])}" if approval["decided_at"] else "",
            "reason": approval["reason"] or "",
        }
    )
    terminal.line("arguments")
    for line in json.dumps(approval["arguments"] if edited is None else edited, indent=2, ensure_ascii=False).split(
        "\n"
    ):
        terminal.line(f"  {line}")
    if approval["not_approvable"] not in (None, "role_insufficient"):
        terminal.note(_WHY_NOT.get(approval["not_approvable"], "You may not approve it."))
    elif approval["state"] == "pending":
        terminal.note(f"Decide with: dragoman approval decide {approval['id']} --approve (or --deny)")


@approval_app.command(
    "decide",
    epilog='Examples: dragoman approval decide apr_0123 --approve; dragoman approval decide apr_0123 --deny --reason "Not today."',
)
def decide_approval(
    context: typer.Context,
    approval_id: ApprovalArgument,
    *,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the call.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="Deny the call; the model sees it.")] = False,
    arguments: Annotated[
        str | None,
        typer.Option("--arguments", metavar="JSON", help="With --approve: arguments that replace the model's."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="The reason. For a denial the model sees it.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Approve or deny a tool call, once. Its run resumes when no other call is pending."""
    session = session_of(context)
    if approve == deny:
        raise BadUsage("Give either --approve or --deny.")
    body: JsonObject = {"decision": "approve" if approve else "deny"}
    if arguments is not None:
        if deny:
            raise BadUsage("--arguments requires --approve.")
        body["arguments"] = _object(arguments)
    if reason is not None:
        body["reason"] = reason

    async def decide(api: ServiceApi) -> None:
        document = await api.post(path_to("approvals", approval_id), body)
        approval = read_as(ApprovalView, document)
        session.terminal.note(
            f"{approval['id']} is {approval['state']}: {approval['tool']} {short_json(_sent(approval))}"
        )
        if approval["run_id"]:
            session.terminal.note(f"Show its run with: dragoman run show {approval['run_id']}")
        if as_json:
            session.terminal.json(document)

    session.perform(decide)


def _approvers(approvers: ApproversView) -> str:
    return ", ".join((*approvers.get("groups", ()), *approvers.get("people", ())))


def _sent(approval: ApprovalView) -> Mapping[str, object]:
    """The arguments that are sent if it is approved."""
    edited = approval["edited_arguments"]
    return approval["arguments"] if edited is None else edited


def _server(approval: ApprovalView) -> str:
    server = approval["server"]
    return "" if server is None else f"{server['slug']} v{server['version']}: {server['runs']}"


def _object(text: str) -> JsonObject:
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise BadUsage("--arguments takes a JSON object.")
    return given
