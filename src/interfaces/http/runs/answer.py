"""The run that answers a request of a front end or of OpenAI's clients."""

from dataclasses import dataclass

from domain.runs.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A run whose events after `after_seq` answer a request."""

    run: Run
    after_seq: int = 0


def run_location(run: Run) -> dict[str, str]:
    """The header with the address of the run."""
    return {"Location": f"/v1/runs/{run.id}"}
