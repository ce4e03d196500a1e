"""Webhooks of the real service: they survive its end, are verified by others' code, sent once by
many, and keep secrets."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from tests.databases import PostgresDatabases
from tests.e2e.hooks import hooks
from tests.e2e.postgres import cluster
from tests.e2e.processes import until
from tests.e2e.service import Json, Service, a_turn, serving
from tests.webhook_builders import a_signing_secret

pytestmark = pytest.mark.timeout(300)

PLANTED = "planted-url-token-5d1c77"


def deliveries(service: Service, run_id: str) -> list[Json]:
    found: list[Json] = service.call("GET", f"/runs/{run_id}/webhook-deliveries")["data"]
    return found


def until_settled(service: Service, run_id: str, state: str, *, count: int = 1) -> list[Json]:
    def settled() -> bool:
        found = deliveries(service, run_id)
        return len(found) == count and {one["state"] for one in found} == {state}

    until(settled, what=f"{count} {state}")
    return deliveries(service, run_id)


@pytest.mark.requirement("E7")
def test_what_was_not_answered_when_the_service_was_killed_is_delivered_after_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with hooks() as receiver:
        with serving(home) as service:
            service.agent("guide", service.script("one", a_turn("Done, and well.")))
            secret = service.call("POST", "/organization/webhook-key")["secret"]
            receiver.go.clear()
            run_id = service.start_run("guide", webhook=receiver.url, metadata={"ticket": "T-7"})
            until(lambda: len(receiver.got) == 1, what="the first attempt")
            assert service.stop(signal.SIGKILL) == -signal.SIGKILL
        receiver.go.set()
        with serving(home) as again:
            [delivery] = until_settled(again, run_id, "delivered")
            assert (delivery["attempts"], delivery["last_status"]) == (2, 204)
            first, second = receiver.got
            assert (first.id, first.body) == (second.id, second.body) == (delivery["id"], first.body)
            told = Verifier(secret).verify(second.body, second.headers)
            assert (told["type"], told["data"]["metadata"]) == ("run.completed", {"ticket": "T-7"})
            assert told["data"] == again.call("GET", f"/runs/{run_id}")


@pytest.mark.requirement("E7")
def test_a_run_that_waits_is_announced_and_so_is_its_end(tmp_path: Path) -> None:
    with hooks() as receiver, serving(tmp_path / "home") as service:
        email = {"subject": "Hi", "body": "There.", "to": "a@example.com"}
        service.agent("writer", service.script("mail", a_turn("", ("send_email", email))), tools=["send_email"])
        run_id = service.start_run("writer", webhook={"url": receiver.url})
        [delivery] = until_settled(service, run_id, "delivered")
        assert delivery["event"] == "run.requires_action"
        told = json.loads(receiver.got[0].body)
        assert [call["params"] for call in told["data"]["pending"]] == [email]
        service.call("POST", f"/runs/{run_id}/cancel")
        until_settled(service, run_id, "delivered", count=2)
        assert json.loads(receiver.got[1].body)["type"] == "run.cancelled"


@pytest.mark.requirement("E7", "B12", "B16")
def test_neither_urls_nor_signing_secrets_are_told_to_anybody(tmp_path: Path) -> None:
    named = a_signing_secret(7)
    with hooks(PLANTED) as receiver, serving(tmp_path / "home", DRAGOMAN_LOG_LEVEL="debug") as service:
        service.agent("guide", service.script("one", a_turn("Done.")))
        service.call("POST", "/secrets", {"name": "SIGNING", "value": named})
        receiver.status, receiver.answer = 401, f"{PLANTED} is not allowed, {named} neither".encode()
        webhook = {"url": f"{receiver.url}?token={PLANTED}", "secret": {"secret": "SIGNING"}}
        run_id = service.start_run("guide", webhook=webhook)
        [failed] = until_settled(service, run_id, "failed")
        assert failed["last_error"] == "The receiver answered HTTP 401."
        gone = service.start_run("guide", webhook=f"http://127.0.0.1:9/{PLANTED}")
        until(lambda: deliveries(service, gone)[0]["attempts"] > 0 if deliveries(service, gone) else False)
        own = service.call("POST", "/organization/webhook-key")["secret"]
        refused = {"agent": "guide", "input": "Go.", "webhook": f"http://user:{PLANTED}@127.0.0.1/"}
        answers = [
            service.client.post("/runs", json=refused).text,
            service.client.post(f"/webhook-deliveries/{failed['id']}/retry").text,
        ]
        paths = ["/runs", f"/runs/{run_id}", f"/runs/{run_id}/events", f"/runs/{gone}/webhook-deliveries"]
        paths += ["/audit-events", "/secrets", "/organization", f"/runs/{run_id}/webhook-deliveries"]
        answers += [service.client.get(path).text for path in paths]
        assert "webhook_delivery.retried" in "".join(answers)
        log = service.log
    said = "".join(answers) + log.read_text(encoding="utf-8")
    assert "webhook" in said
    for planted in (PLANTED, named, own):
        assert planted not in said
    database = b"".join(part.read_bytes() for part in (tmp_path / "home").glob("dragoman.db*"))
    for planted in (PLANTED, named, own):
        assert planted.encode() not in database


@pytest.mark.requirement("E6", "E7")
def test_of_two_workers_one_delivers_each(tmp_path: Path, postgres_databases: PostgresDatabases) -> None:
    with hooks() as receiver, postgres_databases.fresh() as url, cluster(url, tmp_path) as processes:
        service = processes.serve("api", "--no-worker")
        processes.work("one")
        processes.work("two")
        service.agent("guide", service.script("one", a_turn("Done.")))
        runs = [service.start_run("guide", webhook=receiver.url) for _ in range(30)]
        for run_id in runs:
            [delivery] = until_settled(service, run_id, "delivered")
            assert delivery["attempts"] == 1
        assert set(Counter(hook.id for hook in receiver.got).values()) == {1}
        assert len(receiver.got) == 30
