"""`dragoman webhook`: deliveries listed and repeated, and a signing key printed alone."""

from domain.json_value import JsonObject, JsonValue
from interfaces.http.webhooks.views import CreatedWebhookKeyView, WebhookDeliveryView, WebhookReceiverView
from tests.unit.interfaces.cli.fake_service import FakeService, whole

PATH = "/v1/runs/run_1/webhook-deliveries"
PENDING = whole(
    WebhookDeliveryView,
    {
        "id": "whk_1",
        "event": "run.completed",
        "receiver": "hooks.example.com:443",
        "state": "pending",
        "attempts": 2,
        "last_error": "The receiver answered HTTP 503.",
        "next_attempt_at": "2026-01-02T12:00:00.000000Z",
        "delivered_at": None,
    },
)
DELIVERED: JsonObject = {**PENDING, "id": "whk_2", "state": "delivered", "delivered_at": "2026-01-02T12:00:01.000000Z"}


def test_deliveries_of_a_run_are_listed_with_what_happens_next() -> None:
    page: JsonObject = {"data": [PENDING, DELIVERED], "next_cursor": None}
    outcome = FakeService().on("GET", PATH, page).run("webhook", "list", "run_1")
    assert outcome.exit_code == 0
    first, second = (line for line in outcome.out.splitlines() if "whk_" in line)
    assert "The receiver answered HTTP 503.; next attempt 2026-01-02T12:00:00.000000Z" in first
    assert "delivered 2026-01-02T12:00:01.000000Z" in second
    assert FakeService().on("GET", PATH, page).run("webhook", "list", "run_1", "--json").json == page


def test_a_run_without_announcements_says_so() -> None:
    outcome = FakeService().on("GET", PATH, {"data": [], "next_cursor": None}).run("webhook", "list", "run_1")
    assert (outcome.exit_code, outcome.out) == (0, "")
    assert "no webhook" in outcome.err


def test_deliveries_of_all_runs_are_listed_by_state_and_receiver() -> None:
    page: JsonObject = {"data": [PENDING], "next_cursor": None}
    for options, sent in (
        (("--all",), {}),
        (("--state", "failed"), {"state": "failed"}),
        (("--all", "--receiver", "hooks.example.com:443"), {"receiver": "hooks.example.com:443"}),
    ):
        service = FakeService().on("GET", "/v1/webhook-deliveries", page)
        assert "whk_1" in service.run("webhook", "list", *options).out
        [request] = service.requests
        assert {**request.url.params} == {"limit": request.url.params["limit"], **sent}
    assert FakeService().run("webhook", "list", "--state", "lost").exit_code == 2
    assert FakeService().run("webhook", "list", "run_1", "--all").exit_code == 2


def test_receivers_are_listed_with_their_newest_delivery() -> None:
    figures: JsonObject = {
        "receiver": "hooks.example.com:443",
        "deliveries": 12,
        "open": 1,
        "failed": 0,
        "last_delivery": PENDING,
    }
    receivers: list[JsonValue] = [
        whole(WebhookReceiverView, {**figures, "of_inbox": of_inbox}) for of_inbox in (False, True)
    ]
    service = FakeService().on("GET", "/v1/webhook-receivers", {"data": receivers})
    first, second = service.run("webhook", "receivers").out.splitlines()[1:]
    assert first.startswith("hooks.example.com:443")
    assert first.rstrip().endswith("12          1")
    assert second.startswith("inbox: hooks.example.com:443")
    assert "The receiver answered HTTP 503." in first


def test_a_delivery_is_sent_again() -> None:
    path = "/v1/webhook-deliveries/whk_1/retry"
    outcome = FakeService().on("POST", path, PENDING).run("webhook", "retry", "whk_1")
    assert outcome.exit_code == 0
    assert "whk_1 is sent again: run.completed to hooks.example.com:443" in outcome.err
    assert FakeService().on("POST", path, PENDING).run("webhook", "retry", "whk_1", "--json").json == PENDING


def test_a_new_signing_key_stands_alone_on_stdout() -> None:
    key = whole(CreatedWebhookKeyView, {"secret": "whsec_new", "former_signs_until": "2026-01-02T12:00:00.000000Z"})
    path = "/v1/organization/webhook-key"
    outcome = FakeService().on("POST", path, key).run("webhook", "key")
    assert (outcome.exit_code, outcome.out) == (0, "whsec_new\n")
    assert "until 2026-01-02" in outcome.err
    assert FakeService().on("POST", path, key).run("webhook", "key", "--json").json == key
