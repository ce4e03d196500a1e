"""Webhooks in the console and over the API: receivers, deliveries to all of them, and sending one
again."""

from dataclasses import replace

import pytest

from application.webhooks.announcing import Announcement
from domain.identity.role import Role
from domain.webhooks.delivery import DeliveryState, WebhookDelivery, WebhookEvent
from tests.builders import RUN, after, numbered
from tests.integration.http.service import OTHER_ADMIN, Service, paths_of, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.unit.application.webhooks.deliveries import BODY, a_delivery

pytestmark = pytest.mark.requirement("E7", "U6")
OTHER = "other.example.com:443"


def with_deliveries(service: Service) -> tuple[WebhookDelivery, ...]:
    """A failed one, a delivered one to another receiver, and a notice of the inbox; of which the
    last is the newest."""
    failed = replace(a_delivery(1), last_error="The receiver answered HTTP 404.")
    delivered = replace(a_delivery(2, state=DeliveryState.DELIVERED, delivered_at_s=9), receiver=OTHER)
    notice = replace(
        a_delivery(3, state=DeliveryState.PENDING, next_attempt_at_s=9),
        run_id=None,
        receiver="INBOX_URL",
        event=WebhookEvent.APPROVAL_REQUESTED,
    )
    made = (failed, delivered, notice)
    service.state.deliveries |= {each.id: Announcement(delivery=each, body=BODY) for each in made}
    return made


async def listed(service: Service, query: str = "", role: Role = Role.ADMIN) -> list[str]:
    answer = await service.call("GET", f"/v1/webhook-deliveries{query}", token=token_of(role))
    assert answer.status_code == 200, answer.text
    return [entry["receiver"] for entry in answer.json()["data"]]


async def test_deliveries_to_all_webhooks_are_listed_and_those_of_the_inbox_for_admins_alone(service: Service) -> None:
    failed, _, notice = with_deliveries(service)
    assert await listed(service) == [notice.receiver, OTHER, failed.receiver]
    assert await listed(service, role=Role.VIEWER) == [OTHER, failed.receiver]
    assert await listed(service, "?state=failed") == [failed.receiver]
    assert await listed(service, f"?receiver={OTHER}") == [OTHER]
    since = after(2).isoformat().replace("+00:00", "Z")
    assert await listed(service, f"?since={since}&limit=1") == [notice.receiver]
    receivers = (await service.call("GET", "/v1/webhook-receivers")).json()["data"]
    assert [
        (each["receiver"], each["of_inbox"], each["deliveries"], each["open"], each["failed"]) for each in receivers
    ] == [
        (notice.receiver, True, 1, 1, 0),
        (OTHER, False, 1, 0, 0),
        (failed.receiver, False, 1, 0, 1),
    ]
    assert receivers[2]["last_delivery"]["last_error"] == failed.last_error
    for path in ("/v1/webhook-deliveries", "/v1/webhook-receivers"):
        assert (await service.call("GET", path, token=OTHER_ADMIN)).json()["data"] == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("state=lost", "parameters_invalid"),
        ("since=soon", "parameters_invalid"),
        ("since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "delivery_times_invalid"),
        ("cursor=x", "cursor_invalid"),
    ],
)
async def test_a_list_that_cannot_be_is_refused(service: Service, query: str, code: str) -> None:
    assert paths_of(problem_of(await service.call("GET", f"/v1/webhook-deliveries?{query}"), 422, code))


async def test_the_page_has_receivers_and_deliveries_with_their_runs_and_one_is_sent_again(service: Service) -> None:
    failed, delivered, _ = with_deliveries(service)
    browser = await signed_in(service)
    page = (await browse(service, "GET", "/console/webhooks", headers=browser)).text
    assert 'href="/console/webhooks?state=failed&amp;receiver=hooks.example.com%3A443"' in page
    assert 'Inbox: secret <span class="mono">INBOX_URL</span>' in page
    assert page.count(f'href="/console/runs/{RUN}"') == 2
    assert page.count("/retry") == 3
    again = await browse(service, "POST", f"/console/deliveries/{failed.id}/retry", headers=browser)
    assert again.headers["hx-trigger"] == "deliveries-changed"
    filtered = (await browse(service, "GET", "/console/webhooks?state=failed", headers=browser)).text
    assert "No matching deliveries among the 10,000 newest." in filtered
    day = f"{delivered.created_at:%Y-%m-%d}"
    of_day = f"/console/webhooks?receiver={OTHER}&since={day}&until={day}"
    assert (await browse(service, "GET", of_day, headers=browser)).text.count("/retry") == 1


async def test_a_viewer_sees_no_inbox_and_sends_nothing_again_and_a_wrong_day_is_said(service: Service) -> None:
    with_deliveries(service)
    viewer = await signed_in(service, token_of(Role.VIEWER))
    page = (await browse(service, "GET", "/console/webhooks", headers=viewer)).text
    assert "INBOX_URL" not in page
    assert "/retry" not in page
    wrong = (await browse(service, "GET", "/console/webhooks?since=soon", headers=viewer)).text
    assert "“soon” is not a day as YYYY-MM-DD." in wrong
    turned = (await browse(service, "GET", "/console/webhooks?since=2026-01-02&until=2026-01-01", headers=viewer)).text
    assert "The first day is after the last one." in turned
    bogus = (await browse(service, "GET", "/console/webhooks?state=bogus", headers=viewer)).text
    assert "“bogus” is not a state of deliveries." in bogus


async def test_without_deliveries_the_page_says_how_they_begin_and_long_lists_have_pages(service: Service) -> None:
    browser = await signed_in(service)
    assert "Nothing was sent yet." in (await browse(service, "GET", "/console/webhooks", headers=browser)).text
    for number in range(51):
        each = a_delivery(number + 1)
        service.state.deliveries[each.id] = Announcement(delivery=each, body=BODY)
    page = (await browse(service, "GET", "/console/webhooks", headers=browser)).text
    assert "Older deliveries" in page
    assert numbered("whk", 1) not in page
