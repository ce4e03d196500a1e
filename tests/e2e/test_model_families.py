"""Every family of models goes on with its tool loop in another process, after `kill -9` between a
call and its result. `docs/models.md` says so."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, assert_consistent, serving
from tests.e2e.strict_provider import strict_provider
from tests.integration.llm.strict.families import FAMILIES
from tests.integration.llm.strict.provider import Said, StrictProvider
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.timeout(300)]

LOOK, HELD = "mcp__watched__look", "mcp__watched__held_look"


def start_all(service: Service, at: dict[str, StrictProvider]) -> dict[str, str]:
    """A provider, an agent and a run of each family; the runs' ids."""
    started = {}
    for family in FAMILIES:
        provider: Json = {
            "name": family.name,
            "kind": family.kind.value,
            "wire": family.wire.value,
            "api_key": family.key,
        }
        if family.cloud.region is not None:
            provider["cloud"] = {"region": family.cloud.region}
        service.call("POST", "/model-providers", {**provider, "base_url": at[family.name].url})
        settings = {} if family.settings is None else {"thinking_budget": family.settings.thinking_budget}
        service.agent(f"on-{family.name}", family.model, mcp_servers=["watched"], model_settings=settings)
        started[family.name] = service.start_run(f"on-{family.name}")
    return started


@pytest.mark.requirement("H1", "H2", "E3", "E4")
def test_a_tool_loop_of_every_family_survives_a_kill_between_call_and_result(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    held: tuple[str, Json] = (HELD, {"text": "around", "gate": str(gate)})
    with ExitStack() as stack:
        at = {
            family.name: stack.enter_context(strict_provider(family.make(), prefix=family.prefix))
            for family in FAMILIES
        }
        for there in at.values():
            there.say(
                Said(text="I look.", calls=((LOOK, {"text": "left"}), held)),
                Said(calls=((LOOK, {"text": "right"}),)),
                Said(text="All seen."),
            )
        with serving(home) as service:
            log = service.watched_server("watched", trusted=True, max_concurrency=2 * len(FAMILIES))
            runs = start_all(service, at)
            until(
                lambda: log.exists() and log.read_text().count("called held_look") >= len(FAMILIES),
                what="the held calls",
            )
            service.stop(signal.SIGKILL)
        gate.touch()
        with serving(home) as service:
            for family in FAMILIES:
                ended = service.wait(runs[family.name])
                assert (ended["run"]["status"], ended["run"]["output"]) == ("completed", "All seen."), family.name
                assert_consistent(ended["messages"], service.events(runs[family.name]))
        assert {name: there.refused for name, there in at.items() if there.refused} == {}
        assert {name: len(there.bodies) for name, there in at.items()} == dict.fromkeys(at, 3)
