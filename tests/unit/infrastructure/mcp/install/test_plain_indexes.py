"""The operator's indexes, without credentials."""

from pathlib import Path

import pytest

from infrastructure.mcp.install.plain_indexes import installer_variables, plain_indexes, plain_proxies

pytestmark = pytest.mark.requirement("S1")


def test_indexes_of_pip_are_read_from_its_file_and_lose_their_credentials(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://me:pass@word@index.example/simple\nfind-links =\n  /usr/share/wheels\n  /srv/wheels\n"
        "[install]\ntrusted-host = index.example\nno-index = true\n[freeze]\ntimeout = 10\n[global.other]\nx = %(y)s\n"
    )
    assert plain_indexes([file], {}) == {
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_FIND_LINKS": "/usr/share/wheels /srv/wheels",
        "PIP_TRUSTED_HOST": "index.example",
        "PIP_NO_INDEX": "true",
    }


def test_indexes_of_uv_are_read_from_its_file_and_lose_their_credentials(tmp_path: Path) -> None:
    file = tmp_path / "uv.toml"
    file.write_text(
        'find-links = ["/usr/share/wheels", "/srv/wheels"]\noffline = true\nkeyring-provider = "subprocess"\n'
        '[[index]]\nname = "own"\nurl = "https://me:password@own.example/simple"\n'
        '[[index]]\nurl = "https://main.example/simple"\ndefault = true\n[pip]\nextra-index-url = ["https://more.example"]\n'
    )
    assert plain_indexes([file], {}) == {
        "UV_FIND_LINKS": "/usr/share/wheels,/srv/wheels",
        "UV_OFFLINE": "true",
        "UV_INDEX": "own=https://own.example/simple",
        "UV_DEFAULT_INDEX": "https://main.example/simple",
        "UV_EXTRA_INDEX_URL": "https://more.example",
    }


def test_variables_come_before_files_and_others_than_those_of_indexes_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://one.example\ncert = /etc/one.pem\n")
    environment = {
        "PIP_INDEX_URL": "https://me:password@two.example",
        "UV_INDEX": "own=https://me:password@own.example more=https://you@more.example",
        "UV_INDEX_OWN_PASSWORD": "password",
        "PIP_CLIENT_CERT": "/etc/key.pem",
        "HOME": "/home/me",
    }
    assert plain_indexes([file], environment) == {
        "PIP_INDEX_URL": "https://two.example",
        "PIP_CERT": "/etc/one.pem",
        "UV_INDEX": "own=https://own.example more=https://more.example",
    }
    assert installer_variables(environment) == environment.keys() - {"HOME"}


def test_addresses_lose_their_queries_also_where_there_are_several() -> None:
    environment = {
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple?token=secret,secret  https://two.example/simple/#secret",
        "UV_FIND_LINKS": "https://one.example/?a=secret,b=secret,https://two.example/x?secret,/srv/wheels",
        "PIP_FIND_LINKS": "/srv/c#/wheels",
    }
    assert plain_indexes([], environment) == {
        "PIP_EXTRA_INDEX_URL": "https://one.example/simple  https://two.example/simple/",
        "UV_FIND_LINKS": "https://one.example/,https://two.example/x,/srv/wheels",
        "PIP_FIND_LINKS": "/srv/c#/wheels",
    }


@pytest.mark.parametrize(
    ("proxy", "plain"),
    [
        ("http://me:pass@word@proxy.example:3128", "http://proxy.example:3128"),
        ("socks5h://me@proxy.example", "socks5h://proxy.example"),
        ("me:password@proxy.example:3128", "proxy.example:3128"),
        ("http://me:pa/ss@proxy.example/", "http://proxy.example/"),
        ("me:a://b@proxy.example", "proxy.example"),
        ("http://proxy.example:3128", "http://proxy.example:3128"),
        ("", ""),
    ],
)
def test_proxies_lose_their_credentials(proxy: str, plain: str) -> None:
    environment = {"HTTPS_PROXY": proxy, "all_proxy": proxy, "NO_PROXY": "a@b", "HOME": "/home/me"}
    assert plain_proxies(environment) == {"HTTPS_PROXY": plain, "all_proxy": plain}


@pytest.mark.parametrize("text", ["index-url = x", "[global", "\x00", "", "[a]\n[a]\n"])
def test_a_file_that_cannot_be_read_is_left_out(text: str, tmp_path: Path) -> None:
    for name in ("pip.conf", "uv.toml", "missing"):
        if name != "missing":
            (tmp_path / name).write_text(text)
    files = [tmp_path / name for name in ("pip.conf", "uv.toml", "missing")]
    assert plain_indexes(files, {}).keys() <= {"UV_INDEX_URL"}
