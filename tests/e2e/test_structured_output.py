"""Runs with an output schema on every family of models, killed between an answer that does not
match and its repair."""

import json
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, assert_consistent, serving
from tests.e2e.strict_provider import strict_provider
from tests.integration.llm.strict.families import FAMILIES
from tests.integration.llm.strict.provider import Said
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = [NEEDS_SDK_TYPES, pytest.mark.timeout(300)]

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LISBON = {"city": "Lisbon"}


@pytest.mark.requirement("H3", "E4")
def test_an_answer_of_every_family_is_repaired_after_a_kill_between_answer_and_repair(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ExitStack() as stack:
        at = {
            family.name: stack.enter_context(strict_provider(family.make(), prefix=family.prefix))
            for family in FAMILIES
        }
        for there in at.values():
            there.say(Said(text="It is Lisbon."), Said(text="never sent", hangs_after=0), Said(text=json.dumps(LISBON)))
        with serving(home) as service:
            runs = {}
            for family in FAMILIES:
                provider = {
                    "name": family.name,
                    "kind": family.kind.value,
                    "wire": family.wire.value,
                    "api_key": family.key,
                    "cloud": {} if family.cloud.region is None else {"region": family.cloud.region},
                }
                service.call("POST", "/model-providers", {**provider, "base_url": at[family.name].url})
                settings = {} if family.settings is None else {"thinking_budget": family.settings.thinking_budget}
                service.agent(f"on-{family.name}", family.model, model_settings=settings)
                runs[family.name] = service.start_run(f"on-{family.name}", output_schema=SCHEMA)
            until(lambda: all(len(there.bodies) == 2 for there in at.values()), what="the requests to repair")
            service.stop(signal.SIGKILL)
        with serving(home) as service:
            for family in FAMILIES:
                ended = service.wait(runs[family.name])
                assert (ended["run"]["status"], ended["run"]["output_json"]) == ("completed", LISBON), family.name
                roles = [message["role"] for message in ended["messages"]]
                assert roles == ["user", "assistant", "user", "assistant"], family.name
                assert_consistent(ended["messages"], service.events(runs[family.name]))
        assert {name: there.refused for name, there in at.items() if there.refused} == {}


@pytest.mark.requirement("H3")
def test_an_answer_that_never_matches_fails_the_run_which_says_why_everywhere(tmp_path: Path) -> None:
    family = FAMILIES[0]
    with strict_provider(family.make()) as there, serving(tmp_path / "home") as service:
        there.say(Said(text="It is Lisbon."), Said(text='{"city": 3}'))
        provider = {
            "name": family.name,
            "kind": "openai",
            "wire": "responses",
            "api_key": "sk-test",
            "base_url": there.url,
        }
        service.call("POST", "/model-providers", provider)
        service.agent("guide", family.model, output_schema=SCHEMA)
        ended = service.run("guide")["run"]
        assert (ended["status"], ended["output"], ended["output_json"]) == ("failed", '{"city": 3}', None)
        assert ended["error"]["code"] == "output_invalid"
        assert '/city: 3 is not of type "string"' in ended["error"]["detail"]
        last = service.events(ended["id"])[-1]
        assert (last["type"], last["error"]["code"]) == ("run.failed", "output_invalid")
