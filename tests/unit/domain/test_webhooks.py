"""Webhooks: signatures as the specification has them, what answers mean, and how long it is
tried."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from application.webhooks.announcing import announced
from domain.errors import ServiceError
from domain.ids import WebhookDeliveryId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.webhook import WEBHOOK_EVENTS, Webhook, WebhookNote
from domain.secrets.secret import SecretRef
from domain.threads.message import ImageContent, TextContent
from domain.webhooks.delivery import (
    LONGEST_PAUSE_S,
    MAX_ATTEMPTS,
    Attempt,
    DeliveryState,
    SendFailure,
    WebhookDelivery,
    WebhookEvent,
    pause_s,
)
from domain.webhooks.signing import signed_headers, signing_keys
from tests.builders import ORG, RUN, START, a_run, after
from tests.webhook_builders import a_signing_secret, a_webhook, announcing


def a_delivery(*, attempts: int = 1) -> WebhookDelivery:
    return WebhookDelivery(
        id=WebhookDeliveryId("whk_1"),
        organization_id=ORG,
        run_id=RUN,
        event=WebhookEvent.RUN_COMPLETED,
        receiver="hooks.example.com:443",
        created_at=START,
        state=DeliveryState.DELIVERING,
        attempts=attempts,
        next_attempt_at=after(60),
    )


@pytest.mark.requirement("E7")
def test_a_signature_is_the_one_that_other_implementations_make() -> None:
    """The vector that the specification's own libraries are tested with."""
    headers = signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
        signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_named_secret_may_hold_several_keys_which_all_sign() -> None:
    old, new = a_signing_secret(1), a_signing_secret(2)
    headers = signed_headers("whk_1", START, b"{}", signing_keys(f"{new} {old}"))
    both = [signed_headers("whk_1", START, b"{}", signing_keys(each))["webhook-signature"] for each in (new, old)]
    assert headers["webhook-signature"] == " ".join(both)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_####",
        "whsec_c2hvcnQ=",
        "whsec_" + "QUFB" * 22,
        " ".join(a_signing_secret(seed) for seed in range(6)),
    ],
)
def test_what_is_not_a_signing_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"sign|between") as refused:
        signing_keys(text)
    assert not text or text not in str(refused.value)


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_an_answer_of_success_delivers(status: int) -> None:
    after_it = a_delivery().attempted(Attempt(status=status), at=after(2), fraction=0)
    assert (after_it.state, after_it.delivered_at, after_it.next_attempt_at) == (
        DeliveryState.DELIVERED,
        after(2),
        None,
    )
    assert (after_it.last_status, after_it.last_error) == (status, None)


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 404, 410, 413, 422])
def test_an_answer_about_the_request_itself_ends_the_delivery(status: int) -> None:
    after_it = a_delivery().attempted(Attempt(status=status), at=after(2), fraction=0)
    assert (after_it.state, after_it.next_attempt_at) == (DeliveryState.FAILED, None)
    assert after_it.last_error is not None
    assert str(status) in after_it.last_error


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(
    "attempt",
    [Attempt(status=status) for status in (408, 425, 429, 500, 502, 503, 504, 599)]
    + [Attempt(failure=failure) for failure in SendFailure if failure is not SendFailure.BLOCKED],
    ids=str,
)
def test_what_may_pass_is_tried_again(attempt: Attempt) -> None:
    after_it = a_delivery().attempted(attempt, at=after(2), fraction=0.5)
    assert (after_it.state, after_it.next_attempt_at) == (DeliveryState.PENDING, after(7))
    assert after_it.last_error


@pytest.mark.requirement("B16")
def test_an_address_that_may_not_be_requested_ends_the_delivery() -> None:
    after_it = a_delivery().attempted(Attempt(failure=SendFailure.BLOCKED), at=after(2), fraction=0.5)
    assert (after_it.state, after_it.last_error) == (DeliveryState.FAILED, SendFailure.BLOCKED.value)


@pytest.mark.requirement("E7")
def test_pauses_grow_and_make_about_a_day() -> None:
    pauses = [pause_s(attempt, 0.5) for attempt in range(1, MAX_ATTEMPTS)]
    assert pauses[:4] == [5, 15, 45, 135]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S
    assert 20 * 3_600 < sum(pauses) < 28 * 3_600
    assert pause_s(3, 0) == pytest.approx(45 * 0.8)
    assert pause_s(3, 1) == pytest.approx(45 * 1.2)


@pytest.mark.requirement("E7")
def test_the_last_attempt_ends_it_and_asking_again_begins_a_new_round() -> None:
    busy = Attempt(status=503)
    assert a_delivery(attempts=MAX_ATTEMPTS - 1).attempted(busy, at=START, fraction=0).state is DeliveryState.PENDING
    failed = a_delivery(attempts=MAX_ATTEMPTS).attempted(busy, at=START, fraction=0)
    assert failed.state is DeliveryState.FAILED
    again = failed.retried(at=after(9)).taken(until=after(69)).attempted(busy, at=after(10), fraction=0.5)
    assert (again.state, again.attempts, again.next_attempt_at) == (
        DeliveryState.PENDING,
        MAX_ATTEMPTS + 1,
        after(15),
    )


@pytest.mark.requirement("E7")
def test_a_receiver_may_say_when_to_come_again_within_a_day() -> None:
    def pause(retry_after_s: float) -> float:
        waits = a_delivery().attempted(Attempt(status=429, retry_after_s=retry_after_s), at=START, fraction=0.5)
        assert waits.next_attempt_at is not None
        return (waits.next_attempt_at - START).total_seconds()

    assert (pause(120), pause(1), pause(10**9)) == (120, 5, 86_400)


def test_a_delivery_that_is_being_attempted_cannot_be_asked_for_again() -> None:
    with pytest.raises(ServiceError) as refused:
        a_delivery().retried(at=after(59))
    assert refused.value.code == "webhook_delivery_in_progress"
    # Whoever had it is lost by then.
    assert a_delivery().retried(at=after(60)).state is DeliveryState.PENDING


@pytest.mark.requirement("E7")
def test_a_repeated_step_announces_under_the_same_id() -> None:
    event = NewEvent(type=RunEventType.RUN_FAILED, at=START, data={})
    other = NewEvent(type=RunEventType.TURN_STARTED, at=START, data={})
    (first,) = announced(announcing(), (other, event), last_seq=7)
    (again,) = announced(announcing(), (event,), last_seq=7)
    (later,) = announced(announcing(), (event,), last_seq=9)
    assert first == again
    assert first.delivery.id.startswith("whk_")
    assert later.delivery.id != first.delivery.id


def test_a_body_leaves_out_the_bytes_of_images() -> None:
    image = ImageContent(media_type="image/png", data="iVBORw0KGgo=")
    run = announcing(a_run(input=(TextContent(text="Look."), image)))
    (announcement,) = announced(run, (NewEvent(type=RunEventType.RUN_FAILED, at=START, data={}),), last_seq=1)
    assert '"input":[{"type":"text","text":"Look."},{"type":"image","media_type":"image/png"}]' in announcement.body


def test_a_webhook_is_the_same_after_being_stored() -> None:
    webhook = a_webhook(secret="SIGNING", events=(RunEventType.RUN_FAILED,))
    note = WebhookNote.from_json(webhook.note.to_json())
    assert note == webhook.note
    assert note.at(webhook.url) == webhook
    assert "T0K3N" not in f"{webhook.note.to_json()} {webhook!r}"
    assert replace(webhook, secret=None, events=WEBHOOK_EVENTS) == a_webhook()


@pytest.mark.parametrize(
    ("url", "receiver"),
    [
        ("https://hooks.example.com/a?b=c", "hooks.example.com:443"),
        ("http://hooks.example.com", "hooks.example.com:80"),
        ("https://HOOKS.example.com:8443/", "hooks.example.com:8443"),
        ("HTTPS://[2001:db8::1]/T0K3N?x=a:1@b", "[2001:db8::1]:443"),
        ("http://hooks.example.com?T0K3N", "hooks.example.com:80"),
    ],
)
def test_a_receiver_is_host_and_port_alone(url: str, receiver: str) -> None:
    assert a_webhook(url).receiver == receiver


def test_a_webhook_names_known_events_and_a_secret_by_a_legal_name() -> None:
    wrong = Webhook(url="https://x.example", secret=SecretRef("not a name"), events=(RunEventType.TURN_STARTED,))
    assert [fault.path for fault in wrong.violations()] == ["webhook.secret", "webhook.events.0"]
    assert [fault.path for fault in replace(wrong, secret=None, events=()).violations("a")] == ["a.events"]
