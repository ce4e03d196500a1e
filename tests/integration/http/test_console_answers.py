"""Answers of people to workflow runs, on the pages of the console."""

import pytest

from domain.identity.role import Role
from tests.integration.http.asking_workflows import a_workflow, an_asking_run
from tests.integration.http.service import Service, token_of
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("F4")


@pytest.mark.parametrize("is_suspended", [True, False])
async def test_an_answer_can_be_sent_once_the_run_takes_answers(service: Service, is_suspended: bool) -> None:
    await a_workflow(service)
    run_id = await an_asking_run(service, "Good?", {"type": "boolean"}, is_suspended=is_suspended)
    path, admin = f"/console/workflows/runs/{run_id}", await signed_in(service, token_of(Role.ADMIN))
    for page in (path, "/console/inbox") if is_suspended else (path,):
        shown = (await browse(service, "GET", page, headers=admin)).text
        assert ("The answer can be sent once" in shown, 'data-act="a">Answer' in shown) == (
            not is_suspended,
            is_suspended,
        )
    answer = {"node_id": "approve", "answer": "true"}
    answered = await browse(service, "POST", f"{path}/answer", headers=admin, data=answer)
    assert answered.status_code == (200 if is_suspended else 409)
