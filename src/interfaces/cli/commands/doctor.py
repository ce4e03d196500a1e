"""`dragoman doctor`: problems of the installation, and their remedies."""

import typer

from interfaces.cli.diagnosis.finding import State
from interfaces.cli.failures import FAILED
from interfaces.cli.session import JsonFlag, session_of

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "bold red"}


def doctor(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Check the installation and everything it depends on. That is the data directory, the
    database, the service, the model providers and every MCP server. The exit code is 1 if there is
    a problem; warnings do not change it."""
    from interfaces.cli.diagnosis.diagnose import diagnose

    session = session_of(context)
    terminal = session.terminal
    findings = session.complete(diagnose(session.connect, remark=terminal.note))
    if as_json:
        terminal.json(
            {
                "findings": [
                    {"check": found.check, "state": found.state.value, "detail": found.detail, "advice": found.advice}
                    for found in findings
                ]
            }
        )
    else:
        for found in findings:
            terminal.styled(f"{found.state.value:<7}  {found.check}: {found.detail}", style=_STYLES[found.state])
            if found.advice:
                terminal.line(f"{'':<7}  → {found.advice}")
    if any(found.state is State.PROBLEM for found in findings):
        raise typer.Exit(FAILED)
