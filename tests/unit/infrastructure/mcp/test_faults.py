"""How the end of a started server is told."""

import pytest

from infrastructure.mcp.faults import exit_detail


@pytest.mark.requirement("B3", "U4")
@pytest.mark.parametrize(
    ("status", "stderr", "told"),
    [
        (127, "", "The command was not found."),
        (126, "", "The command cannot be run."),
        (1, "bwrap: execvp mcp-time: No such file or directory\n", "The command was not found."),
        (1, "bwrap: execvp /srv/a: b: Permission denied\n[dragoman] …\n", "The command cannot be run."),
        (
            1,
            "oops\nbwrap: execvp mcp-time: No such file or directory\n",
            "The server's process exited before it answered.",
        ),
    ],
)
def test_a_command_that_is_missing_is_told_with_and_without_bubblewrap(status: int, stderr: str, told: str) -> None:
    assert exit_detail(status, "exited", stderr) == told
