"""Sources over HTTP: uploaded as a form or raw, listed, downloaded harmlessly, deleted; too large
ones refused on the way."""

import hashlib
import tracemalloc
from collections.abc import AsyncGenerator

import pytest

from domain.identity.role import Role
from domain.sources.source import MAX_SOURCE_BYTES, Source
from tests.doubles.sources import InMemorySourceIntake
from tests.integration.http.service import OTHER_ADMIN, Conversation, Service, problem_of, token_of

MIB = 1024 * 1024
TEXT = b"# Notes\n\nThe walrus is not an invoice.\n"


async def a_thread(service: Service) -> str:
    return str((await service.call("POST", "/v1/threads")).json()["id"])


async def upload(service: Service, thread: str, name: str = "notes.md", content: bytes = TEXT) -> dict[str, object]:
    response = await service.call("POST", f"/v1/threads/{thread}/sources?name={name}", content=content)
    assert response.status_code == 201, response.text
    document: dict[str, object] = response.json()
    return document


def form(*parts: tuple[str, bytes], boundary: str = "xYzZy") -> tuple[bytes, dict[str, str]]:
    """A form's body of these dispositions and contents, and its header."""
    lines = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode() + content + b"\r\n"
        for disposition, content in parts
    )
    return lines + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


@pytest.mark.requirement("D4")
async def test_a_file_is_uploaded_listed_downloaded_and_deleted(service: Service) -> None:
    thread = await a_thread(service)
    response = await service.call("POST", f"/v1/threads/{thread}/sources?name=notes.md", content=TEXT)

    source = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/v1/sources/{source['id']}"
    assert source["id"].startswith("src_")
    assert {key: source[key] for key in ("thread_id", "name", "kind", "size", "searchable", "problem", "run_id")} == {
        "thread_id": thread,
        "name": "notes.md",
        "kind": "markdown",
        "size": len(TEXT),
        "searchable": True,
        "problem": None,
        "run_id": None,
    }
    assert source["sha256"] == hashlib.sha256(TEXT).hexdigest()
    assert (await service.call("GET", f"/v1/sources/{source['id']}")).json() == source
    assert (await service.call("GET", f"/v1/threads/{thread}/sources")).json() == {
        "data": [source],
        "next_cursor": None,
    }

    content = await service.call("GET", f"/v1/sources/{source['id']}/content")
    assert content.content == TEXT

    assert (await service.call("DELETE", f"/v1/sources/{source['id']}")).status_code == 204
    for path in (f"/v1/sources/{source['id']}", f"/v1/sources/{source['id']}/content"):
        problem_of(await service.call("GET", path), 404, "source_not_found")
    problem_of(await service.call("DELETE", f"/v1/sources/{source['id']}"), 404, "source_not_found")


@pytest.mark.requirement("D4")
async def test_a_form_with_the_file_is_taken_as_browsers_send_it(service: Service) -> None:
    thread = await a_thread(service)
    body, headers = form(
        ('name="note"', b"ignored"),
        ('name="file"; filename="C:\\\\data\\\\Ums\u00e4tze.csv"', b"a,b\r\n1,2\r\n--not the boundary\r\n"),
        ('name="file"; filename="second.txt"', b"ignored too"),
    )
    response = await service.call("POST", f"/v1/threads/{thread}/sources", content=body, headers=headers)

    assert response.status_code == 201, response.text
    source = response.json()
    assert (source["name"], source["kind"]) == ("Ums\u00e4tze.csv", "csv")
    content = (await service.call("GET", f"/v1/sources/{source['id']}/content")).content
    assert content == b"a,b\r\n1,2\r\n--not the boundary\r\n"


async def test_the_name_in_the_path_goes_before_the_one_in_the_form(service: Service) -> None:
    thread = await a_thread(service)
    body, headers = form(('name="file"; filename="blob"', TEXT))
    response = await service.call("POST", f"/v1/threads/{thread}/sources?name=a.md", content=body, headers=headers)
    assert response.json()["name"] == "a.md"


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("a.csv", b"a,b", ("csv", True, None)),
        ("a.html", b"<p>text", ("html", True, None)),
        ("a.pdf", b"%PDF-one\ftwo", ("pdf", True, None)),
        ("a.pdf", b"%PDF-damaged", ("pdf", False, "The document is damaged.")),
        ("a.bin", b"\0\1\2", ("file", False, None)),
        ("empty.txt", b"", ("text", False, None)),
    ],
)
async def test_every_kind_of_file_is_kept_and_says_whether_it_is_searched(
    service: Service, name: str, content: bytes, shown: tuple[object, ...]
) -> None:
    source = await upload(service, await a_thread(service), name, content)
    assert (source["kind"], source["searchable"], source["problem"]) == shown


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("page.html", "application/octet-stream"),
        ("image.svg", "text/plain; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.pdf", "application/octet-stream"),
    ],
)
async def test_a_download_does_nothing_in_a_browser(service: Service, name: str, media_type: str) -> None:
    source = await upload(service, await a_thread(service), name, b"<script>alert(1)</script>")
    response = await service.call("GET", f"/v1/sources/{source['id']}/content")

    assert response.headers["content-type"] == media_type
    assert response.headers["content-disposition"].startswith("attachment;")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert response.headers["content-length"] == "25"


async def test_a_name_cannot_break_out_of_its_header(service: Service) -> None:
    source = await upload(service, await a_thread(service), "a%22;%20filename=%22b.exe%C3%A9.txt")
    header = (await service.call("GET", f"/v1/sources/{source['id']}/content")).headers["content-disposition"]
    assert header == (
        "attachment; filename=\"a_; filename=_b.exe_.txt\"; filename*=UTF-8''a%22%3B%20filename%3D%22b.exe%C3%A9.txt"
    )


@pytest.mark.parametrize("name", ["", "..", "a%2Fb", "a%0Ab", "a%00", "x" * 256])
async def test_a_name_that_is_none_is_refused(service: Service, name: str) -> None:
    thread = await a_thread(service)
    refused = await service.call("POST", f"/v1/threads/{thread}/sources?name={name}", content=TEXT)
    problem_of(refused, 422, "source_name_invalid")
    assert (await service.call("GET", f"/v1/threads/{thread}/sources")).json()["data"] == []


async def test_what_is_no_upload_is_refused(service: Service) -> None:
    path = f"/v1/threads/{await a_thread(service)}/sources"
    problem_of(await service.call("POST", path, content=TEXT), 422, "source_name_missing")

    body, headers = form(('name="other"; filename="a.txt"', TEXT), ('name="file"', TEXT))
    problem_of(await service.call("POST", path, content=body, headers=headers), 422, "file_missing")

    body, headers = form(('name="file"; filename="a.txt"', TEXT))
    for broken, type_ in (
        (body[:-10], headers["Content-Type"]),
        (body, "multipart/form-data"),
        (body, "multipart/form-data; boundary=other"),
        (b"", headers["Content-Type"]),
        (b"\r\n" * 100, headers["Content-Type"]),
    ):
        refused = await service.call("POST", path, content=broken, headers={"Content-Type": type_})
        assert refused.status_code in {400, 422}
        assert refused.headers["content-type"] == "application/problem+json"
    assert (await service.call("GET", path)).json()["data"] == []
    assert not service.state.sources


async def test_a_thread_that_is_not_there_takes_and_lists_no_sources(service: Service) -> None:
    path = "/v1/threads/thr_none/sources"
    problem_of(await service.call("POST", f"{path}?name=a.txt", content=TEXT), 404, "thread_not_found")
    problem_of(await service.call("GET", path), 404, "thread_not_found")


@pytest.mark.requirement("D4")
@pytest.mark.parametrize("as_form", [False, True])
async def test_a_huge_upload_is_refused_on_the_way_without_being_held_in_memory(
    service: Service, monkeypatch: pytest.MonkeyPatch, as_form: bool
) -> None:
    path = f"/v1/threads/{await a_thread(service)}/sources?name=huge.bin"
    body, headers = form(('name="file"; filename="huge.bin"', b"@"))
    before, after = body.split(b"@") if as_form else (b"", b"")
    sent = 0

    async def two_hundred_megabytes() -> AsyncGenerator[bytes, None]:
        nonlocal sent
        yield before
        while sent < 200 * MIB:
            sent += MIB
            yield b"\0" * MIB
        yield after

    # The tables are in memory too, and what stands there is not what is measured.
    async def forget(intake: InMemorySourceIntake, draft: Source, position: int, data: bytes) -> None:
        pass

    monkeypatch.setattr(InMemorySourceIntake, "put_part", forget)
    conversation = Conversation(
        service.app, "POST", path, headers=headers if as_form else {}, body=two_hundred_megabytes()
    )
    tracemalloc.start()
    try:
        await conversation.hold()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert conversation.status == 413
    assert sent <= MAX_SOURCE_BYTES + 2 * MIB
    assert peak < 20 * MIB
    assert not service.state.sources


@pytest.mark.requirement("D4")
async def test_a_file_of_just_the_limit_is_taken_and_one_byte_more_is_not(service: Service) -> None:
    path = f"/v1/threads/{await a_thread(service)}/sources"
    body, headers = form(('name="file"; filename="big.bin"', b"\0" * MAX_SOURCE_BYTES))
    taken = await service.call("POST", path, content=body, headers=headers)
    assert taken.status_code == 201
    assert taken.json()["size"] == MAX_SOURCE_BYTES

    body, headers = form(('name="file"; filename="big.bin"', b"\0" * (MAX_SOURCE_BYTES + 1)))
    problem_of(await service.call("POST", path, content=body, headers=headers), 413, "source_too_large")
    problem_of(
        await service.call("POST", f"{path}?name=a", content=b"\0" * (MAX_SOURCE_BYTES + 1)), 413, "source_too_large"
    )
    assert len(service.state.sources) == 1


async def test_a_json_body_beside_sources_stays_limited_to_ten_mebibytes(service: Service) -> None:
    thread = await a_thread(service)
    body = b'{"role": "user", "content": "' + b"x" * (11 * MIB) + b'"}'
    refused = await service.call(
        "POST", f"/v1/threads/{thread}/messages", content=body, headers={"Content-Type": "application/json"}
    )
    problem_of(refused, 413, "body_too_large")


@pytest.mark.requirement("C6")
async def test_roles_and_organizations_see_what_is_theirs(service: Service) -> None:
    thread = await a_thread(service)
    path = f"/v1/threads/{thread}/sources"
    viewer, runner = token_of(Role.VIEWER), token_of(Role.RUNNER)
    problem_of(await service.call("POST", f"{path}?name=a.txt", content=TEXT, token=viewer), 403, "role_insufficient")
    source = (await service.call("POST", f"{path}?name=a.txt", content=TEXT, token=runner)).json()["id"]
    assert (await service.call("GET", path, token=viewer)).json()["data"] != []
    assert (await service.call("GET", f"/v1/sources/{source}/content", token=viewer)).content == TEXT
    problem_of(await service.call("DELETE", f"/v1/sources/{source}", token=viewer), 403, "role_insufficient")

    for method, foreign, code in (
        ("GET", path, "thread_not_found"),
        ("POST", f"{path}?name=a.txt", "thread_not_found"),
        ("GET", f"/v1/sources/{source}", "source_not_found"),
        ("GET", f"/v1/sources/{source}/content", "source_not_found"),
        ("DELETE", f"/v1/sources/{source}", "source_not_found"),
    ):
        content = TEXT if method == "POST" else None
        problem_of(await service.call(method, foreign, content=content, token=OTHER_ADMIN), 404, code)
    assert (await service.call("DELETE", f"/v1/sources/{source}", token=runner)).status_code == 204


@pytest.mark.requirement("C5")
async def test_adding_and_deleting_are_audited(service: Service) -> None:
    source = await upload(service, await a_thread(service))
    await service.call("DELETE", f"/v1/sources/{source['id']}")
    entries = [
        (entry.action.value, entry.details.get("name"))
        for entry in service.state.audit.values()
        if entry.resource == source["id"]
    ]
    assert entries == [("source.added", "notes.md"), ("source.deleted", None)]


@pytest.mark.requirement("E7")
async def test_sources_go_with_their_thread(service: Service) -> None:
    thread = await a_thread(service)
    source = await upload(service, thread)
    assert (await service.call("DELETE", f"/v1/threads/{thread}")).status_code == 204
    problem_of(await service.call("GET", f"/v1/sources/{source['id']}/content"), 404, "source_not_found")


async def test_sources_are_listed_in_pages(service: Service) -> None:
    thread = await a_thread(service)
    for name in ("a", "b", "c"):
        await upload(service, thread, f"{name}.txt")
    first = (await service.call("GET", f"/v1/threads/{thread}/sources?limit=2")).json()
    second = (await service.call("GET", f"/v1/threads/{thread}/sources?limit=2&cursor={first['next_cursor']}")).json()
    assert [entry["name"] for entry in first["data"] + second["data"]] == ["c.txt", "b.txt", "a.txt"]
    assert second["next_cursor"] is None


async def test_the_document_describes_the_upload(service: Service) -> None:
    document = (await service.client.get("/schema/openapi.json")).json()
    operation = document["paths"]["/v1/threads/{thread_id}/sources"]["post"]
    assert operation["requestBody"]["content"].keys() == {"multipart/form-data", "application/octet-stream"}
    assert "413" in operation["responses"]


@pytest.mark.requirement("U6")
async def test_a_fork_has_copies_of_the_sources_unless_it_is_asked_for_without(service: Service) -> None:
    thread = await a_thread(service)
    source = await upload(service, thread)
    message = (
        await service.call("POST", f"/v1/threads/{thread}/messages", json={"role": "user", "content": "Read it."})
    ).json()
    forks = [
        (await service.call("POST", f"/v1/threads/{thread}/fork", json=body)).json()["id"]
        for body in ({"before_message_id": message["id"]}, {"sources": False})
    ]
    copies, none = [(await service.call("GET", f"/v1/threads/{fork}/sources")).json()["data"] for fork in forks]
    assert none == []
    [copy] = copies
    assert copy == {**source, "id": copy["id"], "thread_id": forks[0]}
    assert (await service.call("DELETE", f"/v1/threads/{thread}")).status_code == 204
    assert (await service.call("GET", f"/v1/sources/{copy['id']}/content")).content == TEXT
