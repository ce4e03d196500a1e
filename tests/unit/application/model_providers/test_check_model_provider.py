"""CheckModelProvider: what each line says, and what is skipped after a failure."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pytest_mock import MockerFixture

from application.audit.ports import AuditLog
from application.model_providers.check_model_provider import CheckModelProvider, CheckModelProviderCommand
from application.model_providers.ports import ProviderPlaces
from application.models.ports import ModelError, ModelEvent, ModelReply, ModelRequest, RequestedCall
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.model_providers.provider_check import ProviderCheckResult
from domain.runs.provider_error import ProviderError
from domain.threads.message import Role as Author
from domain.threads.provider_items import ProviderItems
from tests.builders import an_agent
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.provider_places import InMemoryProviderPlaces, TalkingPlace, said
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, roles_below

ECHO = RequestedCall(name="echo", arguments={"text": "pong"})
REFUSED = ModelError(
    "model_auth",
    "The model provider refused the API key.",
    retryable=False,
    provider_error=ProviderError(status=401, code="invalid_api_key", message="Incorrect API key provided."),
)
BROKEN = ModelError("model_unavailable", "The model provider is unavailable.", retryable=True)


async def checked(
    mocker: MockerFixture,
    places: ProviderPlaces,
    *,
    model: str | None = "small",
    agents: InMemoryState | None = None,
    answer_s: float = 60.0,
) -> ProviderCheckResult:
    audit_log = mocker.create_autospec(AuditLog, instance=True)
    check = CheckModelProvider(
        places=places,
        agents=InMemoryAgentStore(agents or InMemoryState()),
        audit_log=audit_log,
        clock=StepClock(step_s=0.01),
        ids=SequentialIds(),
        answer_s=answer_s,
    )
    result = await check.execute(CheckModelProviderCommand(principal=a_principal(), name="acme", model=model))
    [entry] = [call.args[0] for call in audit_log.record.await_args_list]
    assert (entry.action, entry.resource) == (AuditAction.MODEL_PROVIDER_TESTED, "acme")
    assert entry.details == {"ok": result.ok, "model": result.model}
    return result


def one(place: TalkingPlace) -> InMemoryProviderPlaces:
    return InMemoryProviderPlaces({"acme": {None: place}})


def lines(result: ProviderCheckResult) -> dict[str, str]:
    return {check.check.value: check.outcome.value for check in result.checks}


@pytest.mark.requirement("H4")
async def test_a_provider_that_works_has_four_lines_that_say_so(mocker: MockerFixture) -> None:
    place = TalkingPlace([said(text="1 2 3"), said(ECHO), said(text="pong")])
    result = await checked(mocker, one(place))
    assert result.ok
    assert lines(result) == {"credentials": "ok", "model": "ok", "tool_call": "ok", "streaming": "ok"}
    assert result.model == "acme:small"
    assert {request.model for request in place.requests} == {"acme:small"}
    assert [len(request.tools) for request in place.requests] == [0, 1, 1]


@pytest.mark.requirement("H4")
async def test_the_tool_call_goes_back_with_the_providers_items_and_its_result(mocker: MockerFixture) -> None:
    items = ProviderItems(origin="acme", data=b"[]")
    asked = said(ECHO, text="Calling.")
    asked = ModelReply(
        model=asked.model,
        text=asked.text,
        calls=asked.calls,
        usage=asked.usage,
        finish_reason=asked.finish_reason,
        items=items,
    )
    place = TalkingPlace([said(), asked, said()])
    await checked(mocker, one(place))
    task, reply, results = place.requests[2].messages
    assert [task.role, reply.role, results.role] == [Author.USER, Author.ASSISTANT, Author.TOOL]
    assert reply.items is items
    [result] = results.tool_results
    assert (result.tool_id, result.result) == (reply.tool_uses[0].id, "pong")


@pytest.mark.requirement("H4", "H6")
async def test_a_refused_key_is_said_in_the_providers_words_and_nothing_else_is_tried(mocker: MockerFixture) -> None:
    place = TalkingPlace(models=REFUSED)
    result = await checked(mocker, one(place))
    assert lines(result) == {
        "credentials": "failed",
        "model": "skipped",
        "tool_call": "skipped",
        "streaming": "skipped",
    }
    assert result.checks[0].provider_error == REFUSED.provider_error
    assert not result.ok
    assert place.requests == []


@pytest.mark.requirement("H4")
async def test_a_provider_without_a_list_has_its_key_tested_by_the_model(mocker: MockerFixture) -> None:
    missing = ModelError("model_rejected", "The model provider rejected the request.", retryable=False)
    works = await checked(mocker, one(TalkingPlace([said(), said(ECHO), said()], models=missing)))
    assert lines(works)["credentials"] == "ok"
    refuses = await checked(mocker, one(TalkingPlace([REFUSED], models=missing)))
    assert lines(refuses) == {
        "credentials": "failed",
        "model": "failed",
        "tool_call": "skipped",
        "streaming": "skipped",
    }


@pytest.mark.requirement("H4")
@pytest.mark.parametrize(
    "answers",
    [
        [said(), said(text="No.")],
        [said(), BROKEN],
        [said(), said(ECHO), BROKEN],
        [said(), said(RequestedCall(name="echo", arguments={}, malformed="{"))],
    ],
    ids=["no call", "no answer", "result refused", "malformed call"],
)
async def test_a_tool_call_works_when_its_result_is_accepted(
    mocker: MockerFixture, answers: list[ModelReply | ModelError]
) -> None:
    result = await checked(mocker, one(TalkingPlace(answers)))
    assert lines(result) == {"credentials": "ok", "model": "ok", "tool_call": "failed", "streaming": "ok"}


@pytest.mark.requirement("H4")
async def test_a_reply_that_came_whole_was_not_streamed(mocker: MockerFixture) -> None:
    result = await checked(mocker, one(TalkingPlace([said(streamed=False), said(ECHO), said()])))
    assert lines(result)["streaming"] == "failed"


@pytest.mark.requirement("H4")
async def test_each_deployment_has_its_lines(mocker: MockerFixture) -> None:
    works = TalkingPlace([said(), said(ECHO), said()])
    places = InMemoryProviderPlaces({"acme": {"eu": works, "us": TalkingPlace(models=REFUSED)}})
    result = await checked(mocker, places)
    assert [check.deployment for check in result.checks] == ["eu"] * 4 + ["us"] * 4
    assert [check.outcome.value for check in result.checks if check.check.value == "credentials"] == ["ok", "failed"]


@pytest.mark.requirement("H4")
async def test_without_a_model_the_first_that_an_agent_uses_is_tested(mocker: MockerFixture) -> None:
    state = InMemoryState()
    agent = an_agent(model="openai:gpt", fallback_models=("acme:large", "acme:small"))
    state.agents[agent.id] = [agent]
    used = await checked(mocker, one(TalkingPlace([said(), said(ECHO), said()])), model=None, agents=state)
    assert used.model == "acme:large"
    unused = await checked(mocker, one(TalkingPlace()), model=None)
    assert unused.model is None
    assert lines(unused) == {"credentials": "ok", "model": "skipped", "tool_call": "skipped", "streaming": "skipped"}


@pytest.mark.requirement("H4")
async def test_a_provider_that_does_not_answer_ends_the_test_in_time(mocker: MockerFixture) -> None:
    class SilentPlace(TalkingPlace):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            await asyncio.Event().wait()
            yield said()

    result = await checked(mocker, one(SilentPlace()), answer_s=0.01)
    assert lines(result)["model"] == "failed"
    assert "within 0.01 seconds" in result.checks[1].detail


@pytest.mark.requirement("H4")
async def test_a_provider_whose_secret_is_missing_is_a_result(mocker: MockerFixture) -> None:
    unusable = ModelError("model_rejected", "The secret does not exist.", retryable=False)
    result = await checked(mocker, InMemoryProviderPlaces({"acme": unusable}))
    assert [(check.check.value, check.detail) for check in result.checks] == [
        ("credentials", "The secret does not exist.")
    ]
    assert not result.ok


async def test_a_test_that_needs_the_storage_says_so(mocker: MockerFixture) -> None:
    class UnreadablePlace(TalkingPlace):
        async def names(self) -> tuple[str, ...]:
            raise storage_away()

    with refused("storage_unavailable"):
        await checked(mocker, one(UnreadablePlace()))


async def test_an_unknown_provider_is_not_found(mocker: MockerFixture) -> None:
    with refused("model_provider_not_found"):
        await checked(mocker, InMemoryProviderPlaces({}))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_test_a_provider(role: Role, mocker: MockerFixture) -> None:
    place = TalkingPlace()
    check = CheckModelProvider(
        places=one(place),
        agents=InMemoryAgentStore(InMemoryState()),
        audit_log=mocker.create_autospec(AuditLog, instance=True),
        clock=StepClock(),
        ids=SequentialIds(),
    )
    with refused("role_insufficient"):
        await check.execute(CheckModelProviderCommand(principal=a_principal(role), name="acme", model="small"))
    assert place.listings == 0
