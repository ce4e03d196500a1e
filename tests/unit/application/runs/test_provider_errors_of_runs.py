"""What a provider says when it fails a run: stored and logged, without canary tokens, and not too
long."""

import logging

import pytest

from application.models.ports import ModelError, ModelRetrying
from domain.policy.canary import CanaryToken
from domain.runs.events import RunEventType
from domain.runs.provider_error import MAX_MESSAGE_BYTES, ProviderError
from domain.runs.run import RunError, RunStatus
from tests.builders import an_agent
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

TOKEN = "Nightingale-4471"
GUARDED = an_agent(canary_tokens=(CanaryToken(id="vault", secret=TOKEN),))
LINE = "model provider answered with an error"


def refused(message: str, *, status: int | None = 400, code: str | None = "invalid_request_error") -> ModelError:
    said = ProviderError(status=status, code=code, message=message)
    return ModelError(
        "model_rejected", "The model provider rejected the request.", retryable=False, provider_error=said
    )


def told(harness: RunHarness, caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [vars(record) for record in caplog.records if record.getMessage() == LINE]


@pytest.mark.requirement("H6", "A11")
async def test_a_failed_run_keeps_what_the_provider_said_beside_a_sentence_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = RunHarness([ModelTurn(error=refused("tools.0.name: too long"))])
    with caplog.at_level(logging.WARNING):
        run_id = await harness.play()
    said = ProviderError(status=400, code="invalid_request_error", message="tools.0.name: too long")
    assert harness.run(run_id).status is RunStatus.FAILED
    assert harness.run(run_id).error == RunError(
        code="model_rejected", detail="The model provider rejected the request.", provider_error=said
    )
    [line] = told(harness, caplog)
    assert (line["levelname"], line["run_id"], line["turn"], line["model"]) == (
        "WARNING",
        run_id,
        1,
        harness.agent.config.model,
    )
    assert (line["http_status"], line["provider_code"], line["provider_message"]) == (
        400,
        "invalid_request_error",
        "tools.0.name: too long",
    )
    [generation] = harness.tracer.generations
    assert generation.provider_error == said
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H6", "C6")
async def test_neither_events_nor_the_audit_entry_repeat_it(caplog: pytest.LogCaptureFixture) -> None:
    harness = RunHarness([ModelTurn(error=refused("a private reason"))])
    run_id = await harness.play()
    assert "a private reason" not in str(harness.events(run_id))
    assert "a private reason" not in str(harness.audit(run_id))
    [failed] = harness.of_type(run_id, RunEventType.RUN_FAILED)
    assert failed["error"] == {"code": "model_rejected", "detail": "The model provider rejected the request."}


@pytest.mark.requirement("H6")
async def test_an_attempt_that_another_model_made_up_for_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    said = ProviderError(status=503, code=None, message="try later")
    retrying = ModelRetrying(model="openai:b", attempt=2, reason="model_unavailable", provider_error=said)
    harness = RunHarness([ModelTurn(text="Done.", events=(retrying,))])
    with caplog.at_level(logging.WARNING):
        run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED
    [line] = told(harness, caplog)
    assert (line["model"], line["code"], line["http_status"]) == (harness.agent.config.model, "model_unavailable", 503)


@pytest.mark.requirement("H6", "C4")
@pytest.mark.parametrize("padding", [0, MAX_MESSAGE_BYTES - 8])
async def test_canary_tokens_are_masked_wherever_they_stand(caplog: pytest.LogCaptureFixture, padding: int) -> None:
    message = f"{'.' * padding}{TOKEN.upper()} {TOKEN.encode().hex()} was refused"
    harness = RunHarness([ModelTurn(error=refused(message, code=TOKEN))], agent=GUARDED)
    with caplog.at_level(logging.WARNING):
        run_id = await harness.play()
    error = harness.run(run_id).error
    assert error is not None
    assert error.provider_error is not None
    assert error.provider_error.code == "[canary:vault]"
    kept = f"{error.provider_error.message}{told(harness, caplog)}".lower()
    assert "nightin" not in kept
    assert TOKEN.encode().hex()[:12] not in kept


@pytest.mark.requirement("H6")
async def test_a_long_message_is_cut_at_2_kib() -> None:
    harness = RunHarness([ModelTurn(error=refused("é" * 5000))])
    error = harness.run(await harness.play()).error
    assert error is not None
    assert error.provider_error is not None
    assert error.provider_error.message.endswith("… [cut]")
    assert len(error.provider_error.message.encode()) <= MAX_MESSAGE_BYTES


@pytest.mark.requirement("H6")
async def test_an_error_without_words_of_a_provider_is_as_before(caplog: pytest.LogCaptureFixture) -> None:
    silent = ModelError("model_timeout", "The model provider did not answer in time.", retryable=False)
    harness = RunHarness([ModelTurn(error=silent), says()])
    run_id = await harness.play()
    assert harness.run(run_id).error == RunError(
        code="model_timeout", detail="The model provider did not answer in time."
    )
    assert told(harness, caplog) == []
