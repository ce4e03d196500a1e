"""Files of a thread in a real service: uploaded, searched, computed with, written by code, read
back, and found after a restart."""

import json
from pathlib import Path

import httpx
import pytest

from tests.e2e.service import Json, Service, a_turn, results_by_tool, serving
from tests.integration.extraction.pdf_files import pdf

PAGE = b"<html><head><title>Terms</title></head><body><article><h1>Terms</h1><p>" + (
    b"Customers may return every walrus within thirty days of its delivery, provided that it was not fed. " * 5
    + b"</p></article></body></html>"
)
CODE = """
import csv
total = sum(int(row['amount']) for row in csv.DictReader(open('sales.csv')))
with open('total.txt', 'w') as f:
    f.write(f'total: {total}')
total
"""


def upload(service: Service, thread: str, name: str, content: bytes) -> Json:
    response = service.client.post(f"/threads/{thread}/sources", files={"file": (name, content)})
    assert response.status_code == 201, response.text
    return dict(response.json())


def run_on(service: Service, thread: str) -> dict[str, Json]:
    waited = service.call("POST", f"/threads/{thread}/runs/wait", {"agent": "clerk", "input": "Go."})
    assert waited["run"]["status"] == "completed", waited
    return {name: result["result"] for name, result in results_by_tool(waited["messages"]).items()}


@pytest.mark.requirement("D1", "D4")
def test_files_are_searched_and_computed_with_and_outlive_the_process(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as service:
        model = service.script(
            "clerk",
            a_turn("I look.", ("source_query", {"query": "walrus returns"}), ("code_execution", {"code": CODE})),
            a_turn("Done."),
        )
        service.agent("clerk", model, tools=["source_query", "code_execution"])
        thread = service.call("POST", "/threads")["id"]
        kinds = {
            upload(service, thread, name, content)["kind"]
            for name, content in (
                ("terms.html", PAGE),
                ("sales.csv", b"day,amount\nMon,3\nTue,4\n"),
                ("report.pdf", pdf("cover", "The walrus went home.")),
            )
        }
        assert kinds == {"html", "csv", "pdf"}

        results = run_on(service, thread)
        found = json.loads(str(results["source_query"]))["results"]
        assert {(entry["file"], entry.get("page")) for entry in found} == {("terms.html", None), ("report.pdf", 2)}
        computed = json.loads(str(results["code_execution"]))
        assert computed["result"] == 7
        (written,) = computed["files"]
        content = service.client.get(f"/sources/{written['source_id']}/content")
        assert (content.text, content.headers["x-content-type-options"]) == ("total: 7", "nosniff")

    with serving(home) as service:
        listed = service.call("GET", f"/threads/{thread}/sources")["data"]
        assert {entry["name"] for entry in listed} == {"terms.html", "sales.csv", "report.pdf", "total.txt"}
        assert json.loads(str(run_on(service, thread)["source_query"]))["results"] == found
        assert service.client.delete(f"/threads/{thread}").status_code == 204
        assert service.client.get(f"/sources/{written['source_id']}").status_code == 404


@pytest.mark.requirement("D4")
def test_two_hundred_megabytes_are_refused_on_the_way(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        thread = service.call("POST", "/threads")["id"]
        before = _resident(service)

        def two_hundred_megabytes() -> "list[bytes]":
            return [b"\0" * 1024 * 1024] * 200

        try:
            status = service.client.post(
                f"/threads/{thread}/sources?name=huge.bin", content=iter(two_hundred_megabytes())
            ).status_code
        except httpx.HTTPError:
            status = None  # the service has answered and closed before all was sent
        assert status in {413, None}
        assert service.call("GET", f"/threads/{thread}/sources")["data"] == []
        assert _resident(service) - before < 60_000


def _resident(service: Service) -> int:
    """The most memory the process has had, in KiB."""
    status = Path(f"/proc/{service.process.pid}/status").read_text(encoding="utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])
