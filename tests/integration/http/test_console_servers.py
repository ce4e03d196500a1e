"""The console's pages for adding, importing and operating MCP servers: what they save, refuse and
never show."""

import html
import json

import httpx
import pytest

from domain.identity.role import Role
from tests.integration.http.service import OTHER_ADMIN, Service, token_of
from tests.integration.http.test_console import browse, signed_in

NEW = "/console/servers-new"
LOCAL = {"kind": "custom", "slug": "files", "command": "files-server", "enabled": "on"}
PACKAGE = {"kind": "npm", "slug": "tiny", "package": "tiny", "version": "1.0.0", "enabled": "on"}
REMOTE = {"kind": "http", "slug": "tickets", "url": "https://mcp.example.com/mcp", "enabled": "on"}


async def saved(service: Service, slug: str) -> dict[str, object]:
    answer = await service.call("GET", f"/v1/mcp-servers/{slug}")
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def faults(answer: httpx.Response) -> list[str]:
    """The fields that a refused form names."""
    assert answer.status_code == 422
    assert answer.headers["hx-retarget"] == "#faults"
    return [part.partition('"')[0] for part in answer.text.split('data-field="')[1:]]


@pytest.mark.requirement("B1", "B12")
async def test_a_server_of_each_kind_is_added_with_the_fields_of_its_kind(service: Service) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": "s3cret"})
    for kind, given, expected in (
        ("npm", {"package": "@x/server", "version": "1.2.3", "args": "--root\n/srv\n"}, {"args": ["--root", "/srv"]}),
        ("python", {"package": "mcp-server-time", "timeout_s": "12.5"}, {"version": None, "timeout_s": 12.5}),
        ("oci", {"package": "mcp/time", "version": "1.2", "args": "--utc"}, {"version": "1.2", "command": None}),
        ("custom", {"command": "a-server", "isolation": "shared", "trusted": "on"}, {"trusted": True}),
        ("http", {"url": "https://mcp.example.com/mcp", "rate_limit.calls": "6", "rate_limit.per_s": "60"}, {}),
        ("sse", {"url": "https://mcp.example.com/sse"}, {"isolation": "shared", "enabled": False}),
    ):
        form = {"kind": kind, "slug": f"of-{kind}", **given, **({} if kind == "sse" else {"enabled": "on"})}
        page = await browse(service, "GET", f"{NEW}?kind={kind}", headers=admin)
        assert page.status_code == 200
        assert all(f'name="{name}"' in page.text for name in given)
        answer = await browse(service, "POST", NEW, headers=admin, data=form)
        assert answer.headers["hx-redirect"] == f"/console/servers/of-{kind}", answer.text
        assert (await saved(service, f"of-{kind}")).items() >= {"kind": kind, **expected}.items()
    assert (await saved(service, "of-http"))["rate_limit"] == {"calls": 6, "per_s": 60}
    assert (await browse(service, "GET", f"{NEW}?kind=other", headers=admin)).status_code == 404


@pytest.mark.requirement("B12")
async def test_values_are_stored_as_secrets_or_named_and_no_page_ever_shows_them(service: Service) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": "s3cret"})
    form = LOCAL | {
        "env-0-name": "API_KEY",
        "env-0-value": "pass-w0rd",
        "env-1-name": "BY_NAME",
        "env-1-value.secret": "TOKEN",
        "env-7-name": "LATE",
        "env-7-value": "row",
        "env-8-name": "",
    }
    await browse(service, "POST", NEW, headers=admin, data=form)
    hidden = {"API_KEY": "[hidden]", "BY_NAME": {"secret": "TOKEN"}, "LATE": "[hidden]"}
    assert (await saved(service, "files"))["env"] == hidden
    for path in ("/console/servers/files", "/console/servers/files/edit", "/console/servers"):
        page = await browse(service, "GET", path, headers=admin)
        assert page.status_code == 200
        assert "pass-w0rd" not in page.text
    refused = await browse(
        service, "POST", NEW, headers=admin, data=form | {"env-9-name": "", "env-9-value": "pass-w0rd"}
    )
    assert faults(refused) == ["env"]
    assert "pass-w0rd" not in refused.text


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    ("auth", "shown"),
    [
        ({"auth.type": "bearer", "auth.token": "t0ken"}, {"type": "bearer", "token": "[hidden]"}),
        (
            {"auth.type": "api_key", "auth.header": "X-Key", "auth.value.secret": "TOKEN"},
            {"type": "api_key", "header": "X-Key", "value": {"secret": "TOKEN"}},
        ),
        (
            {
                "auth.type": "oauth_client_credentials",
                "auth.client_id": "me",
                "auth.client_secret": "t0ken",
                "auth.scopes": "a b",
            },
            {"client_id": "me", "client_secret": "[hidden]", "scopes": ["a", "b"], "issuer": None},
        ),
        ({"auth.type": "oauth_authorization_code"}, {"client_id": None, "client_secret": None}),
    ],
)
async def test_every_way_to_be_known_to_a_remote_server_is_entered_and_kept_when_it_is_edited(
    service: Service, auth: dict[str, str], shown: dict[str, object]
) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": "s3cret"})
    part = await browse(service, "GET", f"/console/parts/server-auth?auth.type={auth['auth.type']}", headers=admin)
    assert all(f'name="{name}"' in part.text for name in auth if name != "auth.type")
    answer = await browse(service, "POST", NEW, headers=admin, data=REMOTE | auth)
    assert answer.status_code == 200, answer.text
    before = await saved(service, "tickets")
    assert dict(before["auth"]).items() >= shown.items()  # type: ignore[call-overload]
    # A browser sends the fields as the page has them: no secret is among them.
    kept = {name: value for name, value in auth.items() if value != "t0ken"}
    form = REMOTE | kept | {"revision": "1", "timeout_s": "5"}
    changed = await browse(service, "POST", "/console/servers/tickets/edit", headers=admin, data=form)
    assert changed.status_code == 200, changed.text
    after = await saved(service, "tickets")
    assert (after["auth"], after["timeout_s"], after["revision"]) == (before["auth"], 5, 2)


@pytest.mark.requirement("B12")
async def test_editing_keeps_removes_and_replaces_values_and_tells_of_changes_by_others(service: Service) -> None:
    admin = await signed_in(service)
    given = {f"env-{at}-name": name for at, name in enumerate(("KEEP", "DROP", "SET"))}
    await browse(service, "POST", NEW, headers=admin, data=LOCAL | given | {f"env-{at}-value": "x" for at in range(3)})
    path = "/console/servers/files/edit"
    form = LOCAL | given | {"revision": "1", "env-1-value-remove": "on", "env-2-value.secret": "NOWHERE"}
    form |= {"env-1-remove": "on", "slug": "files-2", "command": "other"}
    answer = await browse(service, "POST", path, headers=admin, data=form)
    assert answer.headers["hx-redirect"] == "/console/servers/files-2"
    server = await saved(service, "files-2")
    assert (server["env"], server["command"]) == ({"KEEP": "[hidden]", "SET": {"secret": "NOWHERE"}}, "other")
    stale = await browse(service, "POST", "/console/servers/files-2/edit", headers=admin, data=form)
    assert stale.status_code == 412
    assert stale.headers["hx-retarget"] == "#flash"
    assert (await saved(service, "files-2"))["revision"] == 2


async def test_the_network_of_a_process_is_entered_and_shown(service: Service) -> None:
    admin = await signed_in(service)
    form = LOCAL | {"network": "allowlist", "network_hosts": "api.example.com\r\n *.b.example \r\n"}
    await browse(service, "POST", NEW, headers=admin, data=form)
    assert (await saved(service, "files"))["network_hosts"] == ["api.example.com", "*.b.example"]
    page = await browse(service, "GET", "/console/servers/files/edit", headers=admin)
    assert "api.example.com\n*.b.example" in page.text


async def test_what_is_wrong_is_told_at_its_fields_and_nothing_is_saved(service: Service) -> None:
    admin = await signed_in(service)
    for form, wrong in (
        (LOCAL | {"slug": "Not A Slug", "timeout_s": "0"}, ["timeout_s"]),
        (LOCAL | {"slug": "Not A Slug"}, ["slug"]),
        (LOCAL | {"timeout_s": "soon", "max_concurrency": "1.5"}, ["timeout_s", "max_concurrency"]),
        (LOCAL | {"isolation": "everybody"}, ["isolation"]),
        (LOCAL | {"command": ""}, ["command"]),
        (LOCAL | {"network": "allowlist", "network_hosts": " \r\n"}, ["network_hosts"]),
        (REMOTE | {"url": "ftp://x"}, ["url"]),
        (REMOTE | {"url": "http://169.254.169.254/mcp"}, ["url"]),
        (REMOTE | {"auth.type": "bearer"}, ["auth.token"]),
        (REMOTE | {"auth.type": "api_key", "auth.value": "x"}, ["auth.header"]),
        (REMOTE | {"headers-0-name": "A", "headers-1-name": "A"}, ["headers"]),
        (REMOTE | {"rate_limit.calls": "3"}, ["rate_limit.per_s"]),
        ({"kind": "npm", "slug": "x", "package": "../x"}, ["package"]),
    ):
        assert faults(await browse(service, "POST", NEW, headers=admin, data=form)) == wrong
    await browse(service, "POST", NEW, headers=admin, data=LOCAL)
    assert faults(await browse(service, "POST", NEW, headers=admin, data=LOCAL)) == ["slug"]
    assert len((await service.call("GET", "/v1/mcp-servers")).json()["data"]) == 1


@pytest.mark.requirement("B12")
async def test_a_server_is_tried_out_before_it_is_saved_or_changed(service: Service) -> None:
    admin = await signed_in(service)
    tested = await browse(service, "POST", f"{NEW}/test", headers=admin, data=LOCAL)
    assert "1 tools" in tested.text
    assert "echo" in tested.text
    broken = await browse(service, "POST", f"{NEW}/test", headers=admin, data=LOCAL | {"slug": "nowhere"})
    assert broken.status_code == 200
    assert 'class="problem"' in broken.text
    assert (await service.call("GET", "/v1/mcp-servers")).json()["data"] == []
    await browse(service, "POST", NEW, headers=admin, data=LOCAL | {"slug": "other"})
    path = "/console/servers/other/edit/test"
    assert "1 tools" in (await browse(service, "POST", path, headers=admin, data=LOCAL)).text
    assert faults(await browse(service, "POST", path, headers=admin, data=LOCAL | {"timeout_s": "-1"})) == ["timeout_s"]
    assert (await saved(service, "other"))["revision"] == 1


@pytest.mark.requirement("B12", "C6")
async def test_stored_secrets_go_to_a_new_address_only_once_somebody_has_read_which_and_where(service: Service) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/secrets", json={"name": "TOKEN", "value": "s3cret"})
    kept = {
        "headers-0-name": "X-Key",
        "headers-0-value": "k3y",
        "headers-1-name": "X-Token",
        "headers-1-value.secret": "TOKEN",
    }
    await browse(service, "POST", NEW, headers=admin, data=REMOTE | kept)
    path = "/console/servers/tickets/edit/test"
    form = {name: value for name, value in (REMOTE | kept).items() if name != "headers-0-value"}
    moved = form | {"url": "https://me:pw@Elsewhere.example.com/mcp?key=1"}

    async def sent_to() -> list[object]:
        entries = (await service.call("GET", "/v1/audit-events?action=mcp_server.tested")).json()["data"]
        return [entry["details"]["address"] for entry in entries]

    asked = await browse(service, "POST", path, headers=admin, data=moved)
    assert asked.status_code == 200
    for told in ("https://elsewhere.example.com/mcp<", "headers.X-Key<", "headers.X-Token (TOKEN)<"):
        assert told in asked.text
    assert "k3y" not in asked.text
    assert await sent_to() == []
    other = moved | {"send_secrets_to": "https://other.example.com/mcp"}
    assert "Send and test" in (await browse(service, "POST", path, headers=admin, data=other)).text
    agreed = moved | {"send_secrets_to": "https://elsewhere.example.com/mcp"}
    assert "Send and test" not in (await browse(service, "POST", path, headers=admin, data=agreed)).text
    assert await sent_to() == ["https://elsewhere.example.com/mcp"]
    for unasked in (form, moved | {"headers-0-value": "new", "headers-1-value.secret": "", "headers-1-value": "new"}):
        assert "Send and test" not in (await browse(service, "POST", path, headers=admin, data=unasked)).text
    assert len(await sent_to()) == 3


@pytest.mark.requirement("B1", "B12")
async def test_a_file_is_imported_only_after_it_was_looked_at(service: Service) -> None:
    admin = await signed_in(service)
    await service.call("POST", "/v1/mcp-servers", json={"slug": "taken", "kind": "custom", "command": "x"})
    entries = {
        "Time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"KEY": "v4lue"}},
        "taken": {"command": "another"},
        "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer t0ken"}},
    }
    form = {"file": json.dumps({"mcpServers": entries, "theme": "dark"})}
    preview = await browse(service, "POST", "/console/servers-import/preview", headers=admin, data=form)
    assert "2 of 3" in preview.text
    for told in ("env.KEY", "headers.Authorization", "to be installed", "There is already an MCP server"):
        assert told in preview.text
    assert "v4lue" not in preview.text
    assert "t0ken" not in preview.text
    assert len((await service.call("GET", "/v1/mcp-servers")).json()["data"]) == 1
    seen = preview.text.partition('name="seen" value="')[2].partition('"')[0]
    other = form | {"file": json.dumps({"mcpServers": {}}), "seen": seen}
    assert faults(await browse(service, "POST", "/console/servers-import", headers=admin, data=other)) == ["file"]
    done = await browse(service, "POST", "/console/servers-import", headers=admin, data=form | {"seen": seen})
    assert "/console/servers/time" in done.text
    assert (await saved(service, "time"))["env"] == {"KEY": "[hidden]"}
    assert (await saved(service, "remote"))["kind"] == "http"


async def test_a_file_that_is_none_is_refused_with_the_place(service: Service) -> None:
    admin = await signed_in(service)
    for text, told in (
        ('{"mcpServers": ', "line 1, column 16"),
        ("[]", "must be a JSON object with"),
        ('{"theme": {}}', "must be a JSON object with"),
        ('{"mcpServers": []}', "must be a JSON object with"),
        ("[" * 100_000, "nested too deeply"),
        ('{"mcpServers": {"a": {"command": "\\ud800"}}}', "is not JSON"),
    ):
        answer = await browse(service, "POST", "/console/servers-import/preview", headers=admin, data={"file": text})
        assert answer.status_code == 422
        assert told in html.unescape(answer.text)


@pytest.mark.requirement("B2")
async def test_an_installation_is_started_followed_and_taken_back(service: Service) -> None:
    admin = await signed_in(service)
    await browse(service, "POST", NEW, headers=admin, data=PACKAGE)
    page = await browse(service, "GET", "/console/servers/tiny", headers=admin)
    assert "not_installed" in page.text
    begun = await browse(service, "POST", "/console/servers/tiny/install", headers=admin)
    assert "<progress" in begun.text
    assert 'hx-trigger="every 1s"' in begun.text
    told = await browse(service, "GET", "/console/servers/tiny/install", headers=admin)
    while "hx-trigger" not in told.headers:
        assert "<progress" in told.text
        told = await browse(service, "GET", "/console/servers/tiny/install", headers=admin)
    assert told.headers["hx-trigger"] == "server-changed"
    assert "<progress" not in told.text
    state = await browse(service, "GET", "/console/servers/tiny/state", headers=admin)
    assert "Installed: 1.0.0" in state.text
    again = await browse(service, "POST", "/console/servers/tiny/install", headers=admin)
    assert again.status_code == 409
    wrong = {"version": "not a version"}
    assert (
        await browse(service, "POST", "/console/servers/tiny/reinstall", headers=admin, data=wrong)
    ).status_code == 422
    assert (await service.call("GET", "/v1/mcp-servers/tiny/status")).json()["installed_version"] == "1.0.0"
    newer = {"version": "2.0.0"}
    await browse(service, "POST", "/console/servers/tiny/reinstall", headers=admin, data=newer)
    while "hx-trigger" not in (await browse(service, "GET", "/console/servers/tiny/install", headers=admin)).headers:
        pass
    assert (await service.call("GET", "/v1/mcp-servers/tiny/status")).json()["installed_version"] == "2.0.0"
    gone = await browse(service, "POST", "/console/servers/tiny/uninstall", headers=admin)
    assert ">Install<" in gone.text


async def test_a_server_is_connected_disconnected_switched_off_and_deleted(service: Service) -> None:
    admin, operator = await signed_in(service), await signed_in(service, token_of(Role.OPERATOR))
    await browse(service, "POST", NEW, headers=admin, data=LOCAL)
    connected = await browse(service, "POST", "/console/servers/files/refresh", headers=operator)
    assert "echo" in connected.text
    assert (await browse(service, "POST", "/console/servers/files/disconnect", headers=operator)).status_code == 200
    off = await browse(service, "POST", "/console/servers/files/switch", headers=admin, data={"enabled": "false"})
    assert ">Enable<" in off.text
    assert (await browse(service, "POST", "/console/servers/files/refresh", headers=operator)).status_code == 409
    standing = await browse(service, "GET", "/console/servers/files/standing?was=disabled", headers=operator)
    assert (standing.status_code, standing.headers.get("hx-trigger")) == (204, None)
    await browse(service, "POST", "/console/servers/files/switch", headers=admin, data={"enabled": "true"})
    standing = await browse(service, "GET", "/console/servers/files/standing?was=disabled", headers=operator)
    assert (standing.status_code, standing.headers.get("hx-trigger")) == (204, "server-changed")
    await browse(service, "POST", NEW, headers=admin, data=LOCAL | {"slug": "nowhere"})
    lost = await browse(service, "POST", "/console/servers/nowhere/refresh", headers=operator)
    assert (lost.status_code, 'class="problem" role="alert"' in lost.text) == (200, True)
    deleted = await browse(service, "POST", "/console/servers/files/delete", headers=admin)
    assert deleted.headers["hx-redirect"] == "/console/servers"
    assert (await browse(service, "GET", "/console/servers/files", headers=admin)).status_code == 404


@pytest.mark.requirement("B12")
async def test_a_person_is_sent_to_the_authorization_server_by_a_link(service: Service) -> None:
    admin = await signed_in(service)
    await browse(service, "POST", NEW, headers=admin, data=REMOTE | {"auth.type": "oauth_authorization_code"})
    page = await browse(service, "GET", "/console/servers/tickets", headers=admin)
    assert ">Authorize<" in page.text
    begun = await browse(service, "POST", "/console/servers/tickets/authorize", headers=admin)
    assert 'rel="noopener noreferrer"' in begun.text
    assert "standing?was=" in begun.text
    await browse(service, "POST", NEW, headers=admin, data=LOCAL)
    assert (await browse(service, "POST", "/console/servers/files/authorize", headers=admin)).status_code == 409


@pytest.mark.requirement("C6")
async def test_each_role_sees_and_may_what_the_api_lets_it_and_strangers_find_nothing(service: Service) -> None:
    admin = await signed_in(service)
    await browse(service, "POST", NEW, headers=admin, data=LOCAL)
    for_admins = (
        ("POST", NEW, LOCAL),
        ("POST", f"{NEW}/test", LOCAL),
        ("POST", "/console/servers-import/preview", {"file": '{"mcpServers": {}}'}),
        ("POST", "/console/servers-import", {"file": "{}", "seen": "x"}),
        ("POST", "/console/servers/files/edit", LOCAL | {"revision": "1"}),
        ("POST", "/console/servers/files/edit/test", LOCAL),
        ("GET", NEW, {}),
        ("GET", "/console/servers-import", {}),
        ("GET", "/console/servers/files/edit", {}),
        ("GET", "/console/parts/server-auth", {}),
        ("GET", "/console/parts/server-entry?group=env&at=3", {}),
        *(
            ("POST", f"/console/servers/files/{action}", {})
            for action in ("install", "uninstall", "reinstall", "switch", "authorize", "delete", "test")
        ),
    )
    for role in (Role.VIEWER, Role.RUNNER, Role.OPERATOR):
        person = await signed_in(service, token_of(role))
        for method, path, form in for_admins:
            answer = await browse(service, method, path, headers=person, data=form if method == "POST" else None)
            assert answer.status_code == 403, f"{role} {method} {path}"
        page = (await browse(service, "GET", "/console/servers/files", headers=person)).text.partition("<main")[2]
        assert ("Connect and list" in page) == (role is Role.OPERATOR)
        for button in (">Test<", ">Edit<", ">Disable<", ">Delete<", ">Install<"):
            assert button not in page
        assert "servers-new" not in (await browse(service, "GET", "/console/servers", headers=person)).text
        if role is not Role.OPERATOR:
            for action in ("refresh", "disconnect"):
                answer = await browse(service, "POST", f"/console/servers/files/{action}", headers=person)
                assert answer.status_code == 403
    stranger = await signed_in(service, OTHER_ADMIN)
    for path in ("", "/edit", "/state", "/install", "/standing", "/logs"):
        assert (await browse(service, "GET", f"/console/servers/files{path}", headers=stranger)).status_code == 404
    for action in (
        "edit",
        "edit/test",
        "install",
        "uninstall",
        "reinstall",
        "disconnect",
        "switch",
        "authorize",
        "delete",
    ):
        answer = await browse(service, "POST", f"/console/servers/files/{action}", headers=stranger, data=LOCAL)
        assert answer.status_code == 404, action
    for method, path, form in for_admins:
        if method == "POST":
            without = {"cookie": admin["cookie"]}
            assert (await browse(service, method, path, headers=without, data=form)).status_code == 403
    assert (await saved(service, "files"))["revision"] == 1
