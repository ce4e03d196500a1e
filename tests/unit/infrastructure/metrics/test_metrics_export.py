"""MetricsExport: what is sent, when, and by whom."""

import pytest
from pytest_mock import MockerFixture

from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metrics_export import Families, MetricsExport
from infrastructure.metrics.page import PrometheusPage
from infrastructure.tracing.observation_sender import BackgroundSender


@pytest.mark.requirement("K8")
async def test_the_backlog_is_read_before_and_a_last_export_is_made_at_the_end(mocker: MockerFixture) -> None:
    instruments = Instruments(version="1")
    page = mocker.create_autospec(PrometheusPage, instance=True)
    sender = mocker.create_autospec(BackgroundSender, instance=True)
    export = MetricsExport(page=page, instruments=instruments, sender=sender, interval_s=60)

    await export.execute()
    instruments.runs_in_hand.set(7)
    await export.close()

    assert page.refresh.await_count == 2
    sender.close.assert_awaited_once()
    families: Families = sender.submit.call_args.args[0]()
    assert {
        sample.value for family in families if family.name == "dragoman_runs_in_hand" for sample in family.samples
    } == {7}
