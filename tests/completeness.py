"""Says at the end which tests did not run, and why. Where all of them must
(`DRAGOMAN_TEST_COMPLETE=1`, as `.ci/run` has it) each is a failure, unless it was not asked for or
is beyond the machine."""

import os
from collections import Counter

import pytest

COMPLETE = "DRAGOMAN_TEST_COMPLETE"
OPT_IN = "opt in with "
"""How the reason of a test begins that nobody runs without asking for it: it talks to the world."""
BEYOND = "beyond this machine: "
"""How the reason of a test begins whose needs nothing that `make test` could install would meet."""


def beyond(what: str) -> str:
    """The reason to skip what this machine does not permit, or what cannot be reached from it."""
    return f"{BEYOND}{what}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A whole run in which something was left out has failed."""
    if _left_out(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The last lines: how many did not run, for which reason."""
    reasons = _reasons(config)
    if not reasons:
        return
    terminalreporter.section("tests that did not run")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count:5}  {reason}")
    left_out = _left_out(config)
    if left_out:
        terminalreporter.line(
            f"{COMPLETE}=1: this is a failure. {left_out} of them could have run, had what they need been installed.",
            red=True,
        )


def _left_out(config: pytest.Config) -> int:
    if os.environ.get(COMPLETE) != "1":
        return 0
    return sum(count for reason, count in _reasons(config).items() if not reason.startswith((OPT_IN, BEYOND)))


def _reasons(config: pytest.Config) -> Counter[str]:
    """How often each reason was given. Processes of pytest-xdist leave telling to the one that
    started them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(reporter, pytest.TerminalReporter) or hasattr(config, "workerinput"):
        return Counter()
    return Counter(_reason(report) for report in reporter.stats.get("skipped", []))


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.longrepr
    return where[2].removeprefix("Skipped: ") if isinstance(where, tuple) else str(where)
