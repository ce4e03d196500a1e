"""What the console says of an action: that it was done, and nothing of that where it was
refused."""

import re

import pytest

from interfaces.console.toasts import SENTENCES
from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_console_workflows import TEXT, saved, stocked

__all__ = ["stocked"]
pytestmark = pytest.mark.requirement("U6")

ENDS_WHAT_THERE_IS = {"/impersonation/end", "/sessions/end"}
"""They end what there is, even if that is nothing."""
FAULTY = {
    "/people/{user_id}/limits": {"user_limits.calls": "many"},
    "/workflows/new": {"definition": TEXT.replace("guide", "nobody")},
}
"""What is refused though it is no empty form."""


async def test_an_action_that_is_refused_never_says_that_it_was_done(stocked: Service) -> None:
    admin = await signed_in(stocked)
    told = {}
    for route in sorted(SENTENCES.keys() - ENDS_WHAT_THERE_IS):
        path = "/console" + re.sub(r"\{[^}]+\}", "none", route)
        answer = await browse(stocked, "POST", path, headers=admin, data=FAULTY.get(route, {}))
        if answer.status_code < 400 or "toast" in answer.headers:
            told[route] = answer.status_code
    assert told == {}


async def test_a_definition_with_faults_is_not_said_to_be_saved(stocked: Service) -> None:
    admin, path = await signed_in(stocked), await saved(stocked)
    faulty = {"definition": TEXT.replace("guide", "nobody"), "version": "1"}
    refused = await browse(stocked, "POST", f"{path}/edit", headers=admin, data=faulty)
    assert (refused.status_code, refused.headers.get("toast")) == (422, None)
    assert "unknown_agent" in refused.text
    done = await browse(stocked, "POST", f"{path}/edit", headers=admin, data=faulty | {"definition": TEXT})
    assert (done.status_code, done.headers["toast"]) == (200, "The workflow is saved.")
