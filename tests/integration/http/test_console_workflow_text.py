"""The text of a workflow's version in the console: comments stay, and are compared and restored
with their version."""

import html

import pytest

from tests.integration.http.service import Service
from tests.integration.http.test_console import browse, signed_in

pytestmark = pytest.mark.requirement("F1", "U6")
TEXT = """# Why there is one node: it only hands on.
name: story
nodes:
  - {id: start, kind: entrypoint}  # the input
"""


async def saved(service: Service, admin: dict[str, str], text: str) -> str:
    answer = await browse(service, "POST", "/console/workflows/new", headers=admin, data={"definition": text})
    assert "hx-redirect" in answer.headers, answer.text
    return answer.headers["hx-redirect"]


async def shown(service: Service, admin: dict[str, str], path: str) -> str:
    return html.unescape((await browse(service, "GET", path, headers=admin)).text)


async def test_comments_are_in_the_saved_version_and_in_the_form_that_changes_it(service: Service) -> None:
    admin = await signed_in(service)
    path = await saved(service, admin, TEXT.replace("\n", "\r\n"))
    for page in (path, f"{path}/edit"):
        assert TEXT in await shown(service, admin, page)


async def test_a_changed_comment_is_a_version_that_is_compared_and_restored(service: Service) -> None:
    admin = await signed_in(service)
    path = await saved(service, admin, TEXT)
    changed = TEXT.replace("the input", "the question")
    answer = await browse(service, "POST", f"{path}/edit", headers=admin, data={"definition": changed, "version": "1"})
    assert answer.headers["hx-redirect"] == path
    changes = await shown(service, admin, f"{path}/changes?version=2")
    assert "# the input" in changes
    assert "# the question" in changes
    await browse(service, "POST", f"{path}/restore?version=1&newest=2", headers=admin)
    assert TEXT in await shown(service, admin, path)


async def test_a_definition_that_programs_saved_is_written_out_anew(service: Service) -> None:
    admin = await signed_in(service)
    path = await saved(service, admin, TEXT)
    workflow = path.rpartition("/")[2]
    await service.call("PATCH", f"/v1/workflows/{workflow}", json={"name": "tale"})
    page = await shown(service, admin, path)
    assert "name: tale" in page
    assert "# the input" not in page
    by_json = await saved(service, admin, '{"name": "json", "nodes": [{"id": "start", "kind": "entrypoint"}]}')
    assert "kind: entrypoint" in await shown(service, admin, by_json)
