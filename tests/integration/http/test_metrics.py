"""`/metrics`, over HTTP."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from infrastructure.metrics.page import FRESH_S
from tests.builders import ORG
from tests.composition import MODEL, the_settings
from tests.integration.http.service import Act, Harness, Service


def samples(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The page as a scraper understands it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


@pytest.mark.requirement("G2")
async def test_the_page_shows_requests_and_what_is_not_over_and_names_no_organization(service: Service) -> None:
    created = ("dragoman_http_requests_total", (("method", "POST"), ("path", "/v1/runs"), ("status", "202")))
    before = samples((await service.call("GET", "/metrics", token=None)).text).get(created, 0)
    service.worker.act = Act.REST
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()
    service.clock.advance(FRESH_S)
    answer = await service.call("GET", "/metrics", token=None)
    assert answer.status_code == 200
    assert re.fullmatch(r"text/plain; version=[0-9.]+; charset=utf-8", answer.headers["content-type"])
    found = samples(answer.text)
    assert found["dragoman_database_up", ()] == 1
    assert found["dragoman_runs", (("status", "queued"),)] == 1
    assert found[created] == before + 1
    assert found["dragoman_build_info", (("version", "1.2.3"),)] == 1
    assert ORG not in answer.text
    assert run["id"] not in answer.text


@pytest.mark.requirement("G2")
async def test_with_a_token_set_nobody_reads_the_page_without_it() -> None:
    async with Harness(settings=the_settings(metrics_token="a-token-for-monitoring")).service() as service:
        for token in (None, "a-token-for-somebody-else"):
            refused = await service.call("GET", "/metrics", token=token)
            assert refused.status_code == 401
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["code"] == "metrics_token_required"
        shown = await service.call("GET", "/metrics", token="a-token-for-monitoring")
        assert shown.status_code == 200
