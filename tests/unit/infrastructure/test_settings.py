"""Settings from the environment: defaults, errors a person can act on, hints for typing
mistakes."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from domain.rate_limit import RateLimit
from infrastructure.lifecycle import missing_directories
from infrastructure.settings import Settings, SettingsError, base_process_environment, load_settings, unknown_variables


def test_the_case_of_a_variable_does_not_matter_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "dragoman_port": "9000",
        "openai_api_key": "sk-1",
        "DRAGOMAN_HOST": "",
        "HOST": "10.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)

    settings = load_settings()

    assert settings.port == 9000
    assert settings.openai_api_key is not None
    assert settings.host == "127.0.0.1"


def test_everything_has_a_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    settings = load_settings()

    assert settings.home == tmp_path / ".dragoman"
    assert (settings.host, settings.port) == ("127.0.0.1", 8321)
    assert (settings.database_url, settings.secret_keys) == (None, ())
    assert settings.mcp_enabled
    assert not settings.traces_to_langfuse
    assert settings.secret_values == ()


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {
        "DRAGOMAN_HOME": str(tmp_path / "data"),
        "DRAGOMAN_DATABASE_URL": f"sqlite:///{tmp_path}/elsewhere.db",
        "DRAGOMAN_PORT": "9000",
        "DRAGOMAN_SECRET_KEY": "the newest long passphrase, the oldest long passphrase",
        "DRAGOMAN_MCP_ENABLED": "false",
        "DRAGOMAN_TOOL_SEARCH_THRESHOLD": "0",
        "DRAGOMAN_PUBLIC_URL": "https://agents.example.com/",
        "DRAGOMAN_EGRESS_ALLOW": "10.1.0.0/16, mcp.internal,",
        "HTTPS_PROXY": "http://ann:pass%20word@proxy.internal:3128",
        "http_proxy": "proxy.internal:3129",
        "no_proxy": ".internal, 10.0.0.0/8",
        "DRAGOMAN_TRACE_CONTENT": "OFF",
        "DRAGOMAN_LOG_LEVEL": "DEBUG",
        "DRAGOMAN_URL": "http://127.0.0.1:9000",
        "DRAGOMAN_API_KEY": "dgm_key-of-the-cli",
        "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
        "LANGFUSE_SECRET_KEY": "sk-lf-2",
        "OPENAI_API_KEY": "sk-openai",
        "OPENAI_BASE_URL": "http://127.0.0.1:8000/v1/",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    settings = load_settings()

    assert settings.home == tmp_path / "data"
    assert settings.database_path == tmp_path / "elsewhere.db"
    assert settings.port == 9000
    assert settings.secret_keys == ("the newest long passphrase", "the oldest long passphrase")
    assert not settings.mcp_enabled
    assert settings.tool_search_threshold == 0
    assert settings.public_url == "https://agents.example.com"
    assert settings.egress_allowed == ("10.1.0.0/16", "mcp.internal")
    assert settings.https_proxy == "http://ann:pass%20word@proxy.internal:3128"
    assert settings.http_proxy == "http://proxy.internal:3129"
    assert settings.proxy_exceptions == (".internal", "10.0.0.0/8")
    assert "pass word" in settings.secret_values
    assert (settings.trace_content, settings.log_level) == ("off", "debug")
    assert settings.openai_base_url == "http://127.0.0.1:8000/v1"
    assert settings.traces_to_langfuse
    assert settings.langfuse_url == "https://cloud.langfuse.com"
    assert unknown_variables() == ()
    assert set(settings.secret_values) >= {
        *("the newest long passphrase", "the oldest long passphrase"),
        *("dgm_key-of-the-cli", "sk-lf-2", "sk-openai"),
    }


def test_the_rate_of_keys_is_so_many_requests_in_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().rate_limit_of_keys is None
    monkeypatch.setenv("DRAGOMAN_KEY_RATE_LIMIT", "600/2.5")
    assert load_settings().rate_limit_of_keys == RateLimit(calls=600, per_s=2.5)


@pytest.mark.requirement("B10")
def test_the_rate_of_mcp_calls_is_that_of_every_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().rate_limit_of_mcp_calls is None
    monkeypatch.setenv("DRAGOMAN_MCP_RATE_LIMIT", "6000/60")
    assert load_settings().rate_limit_of_mcp_calls == RateLimit(calls=6000, per_s=60)
    monkeypatch.setenv("DRAGOMAN_MCP_RATE_LIMIT", "6000")
    with pytest.raises(SettingsError, match=r"DRAGOMAN_MCP_RATE_LIMIT must be CALLS/SECONDS.* Example: .*=6000/60"):
        load_settings()


@pytest.mark.parametrize(
    "value", ["600", "600/", "/60", "0/60", "60/0", "60/-1", "60/nan", "60/inf", "1e3/60", "2000000/1"]
)
def test_a_rate_of_keys_that_is_none_is_refused_at_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DRAGOMAN_KEY_RATE_LIMIT", value)
    with pytest.raises(SettingsError, match="DRAGOMAN_KEY_RATE_LIMIT must be REQUESTS/SECONDS"):
        load_settings()


def test_addresses_that_many_clients_share_are_networks_and_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().networks_of_shared_addresses == (ip_network("127.0.0.0/8"), ip_network("::1/128"))
    monkeypatch.setenv("DRAGOMAN_SHARED_ADDRESSES", "10.0.3.7, fd00::/8")
    assert load_settings().networks_of_shared_addresses == (ip_network("10.0.3.7/32"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SHARED_ADDRESSES", "proxy.internal"),
        ("SHARED_ADDRESSES", "10.0.0.1/8"),
        ("MAX_CONNECTIONS", "0"),
        ("MAX_CONNECTIONS_PER_ADDRESS", "many"),
        ("REQUEST_TIMEOUT_S", "0.5"),
    ],
)
def test_bounds_of_connections_that_are_none_are_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{name}", value)
    with pytest.raises(SettingsError, match=f"DRAGOMAN_{name} must be "):
        load_settings()


@pytest.mark.parametrize("variable", ["LANGFUSE_HOST", "LANGFUSE_BASE_URL"])
def test_langfuse_is_found_under_either_of_its_names(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:3000/")

    assert load_settings().langfuse_url == "http://127.0.0.1:3000"


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "")
    monkeypatch.setenv("OPENAI_API_KEY", "")

    assert load_settings().port == 8321
    assert load_settings().openai_api_key is None


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        *(
            (
                "HTTPS_PROXY",
                value,
                "HTTPS_PROXY must be the http URL of a proxy, for requests to https URLs. Example:"
                " HTTPS_PROXY=http://proxy.internal:3128",
            )
            for value in ("https://ann:secret@proxy.internal", "socks5://proxy.internal:1080", "http://:3128")
        ),
        (
            "DRAGOMAN_EGRESS_ALLOW",
            "10.1.0.0/16,http://mcp.internal/",
            "DRAGOMAN_EGRESS_ALLOW must be networks, addresses and host names separated by commas, not"
            " '10.1.0.0/16,http://mcp.internal/'. Example: DRAGOMAN_EGRESS_ALLOW=10.1.0.0/16,mcp.internal",
        ),
        (
            "DRAGOMAN_PORT",
            "abc",
            "DRAGOMAN_PORT must be a port from 0 to 65535, not 'abc'. Example: DRAGOMAN_PORT=8321",
        ),
        ("DRAGOMAN_PORT", "65536", "not '65536'"),
        ("DRAGOMAN_HOST", "not a host", "must be an address or host name"),
        ("DRAGOMAN_WORKER_CONCURRENCY", "0", "must be a number from 1 to 1000, not '0'"),
        ("DRAGOMAN_MCP_ENABLED", "perhaps", "must be true or false, not 'perhaps'"),
        ("DRAGOMAN_PUBLIC_URL", "agents.example.com", "Example: DRAGOMAN_PUBLIC_URL=https://agents.example.com"),
        ("DRAGOMAN_SQLITE_SYNCHRONOUS", "off", "must be normal or full"),
        ("DRAGOMAN_TRACE_CONTENT", "some", "must be on or off"),
        ("DRAGOMAN_LOG_LEVEL", "loud", "must be debug, info, warning or error"),
        ("DRAGOMAN_LOG_FORMAT", "xml", "must be console or json"),
        ("DRAGOMAN_DATABASE_URL", "mysql://db/x", "must be the URL of an SQLite file"),
        ("DRAGOMAN_DATABASE_URL", "sqlite:///:memory:", "must be the URL of an SQLite file"),
        ("DRAGOMAN_DATABASE_URL", "sqlite:///a.db?mode=ro", "must be the URL of an SQLite file"),
        ("DRAGOMAN_DATABASE_URL", "postgresql://db/x", "DRAGOMAN_SECRET_KEY is missing"),
        ("LANGFUSE_HOST", "langfuse", "LANGFUSE_HOST must be an http or https URL"),
        ("DRAGOMAN_SIEM_URL", "ftp://siem", "DRAGOMAN_SIEM_URL must be an http or https URL, or syslog+tcp"),
        ("DRAGOMAN_SIEM_URL", "syslog+tls://siem", "DRAGOMAN_SIEM_URL must be an http or https URL, or syslog+tcp"),
        ("DRAGOMAN_SIEM_HEADERS", "Splunk", "DRAGOMAN_SIEM_HEADERS must be NAME=VALUE"),
        (
            "DRAGOMAN_SIEM_CA_FILE",
            "/absent.pem",
            "DRAGOMAN_SIEM_CA_FILE must be a readable file of certificates in PEM",
        ),
        ("DRAGOMAN_SIEM_CA_FILE", __file__, "DRAGOMAN_SIEM_CA_FILE must be a readable file of certificates in PEM"),
        ("DRAGOMAN_VAULT_CA_FILE", "/absent.pem", "DRAGOMAN_VAULT_CA_FILE must be a readable file of certificates"),
        ("DRAGOMAN_VAULT_CA_FILE", __file__, "DRAGOMAN_VAULT_CA_FILE must be a readable file of certificates in PEM"),
        ("DRAGOMAN_VAULT_PREFIX", "dragoman", "DRAGOMAN_VAULT_PREFIX must be a path with {organization}"),
        ("DRAGOMAN_VAULT_PREFIX", "a/../{organization}", "DRAGOMAN_VAULT_PREFIX must be a path with {organization}"),
        ("DRAGOMAN_VAULT_URL", "https://vault.internal", "DRAGOMAN_VAULT_URL needs one login"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector", "OTEL_EXPORTER_OTLP_ENDPOINT must be the http or https URL"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer", "OTEL_EXPORTER_OTLP_HEADERS must be NAME=VALUE"),
        ("DRAGOMAN_METRICS_TOKEN", "short", "DRAGOMAN_METRICS_TOKEN must be a text of at least 16"),
        ("DRAGOMAN_METRICS_PORT", "99999", "DRAGOMAN_METRICS_PORT must be a port"),
        ("OPENAI_BASE_URL", "ftp://models", "OPENAI_BASE_URL must be an http or https URL"),
        ("LANGFUSE_PUBLIC_KEY", "pk-lf-1", "LANGFUSE_SECRET_KEY is missing"),
        ("LANGFUSE_SECRET_KEY", "sk-lf-1", "LANGFUSE_PUBLIC_KEY is missing"),
    ],
)
def test_a_wrong_value_fails_with_its_name_the_fault_and_an_example(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError) as caught:
        load_settings()

    assert expected in str(caught.value)
    assert "Example: " in str(caught.value)


def test_every_wrong_value_is_named_at_once_and_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "abc")
    monkeypatch.setenv("DRAGOMAN_SECRET_KEY", "hunter2")
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "mysql://me:hunter2@db/x")
    monkeypatch.setenv("OPENAI_BASE_URL", "me:hunter2@models")

    with pytest.raises(SettingsError) as caught:
        load_settings()

    lines = str(caught.value).splitlines()
    assert lines[0] == "4 settings are wrong:"
    assert len(lines) == 5
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_refused_database_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "mysql://me:hunter2@db/x")

    with pytest.raises(SettingsError) as caught:
        load_settings()

    assert "DRAGOMAN_DATABASE_URL" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.requirement("E6")
def test_the_database_url_decides_between_the_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SECRET_KEY", "a-long-enough-passphrase")
    assert load_settings().postgres_url is None
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "sqlite:///mine.db")
    assert load_settings().postgres_url is None
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "postgresql://me:hunter2@db/x")
    settings = load_settings()
    assert settings.postgres_url == "postgresql://me:hunter2@db/x"
    assert settings.database_path is None
    assert "hunter2" in settings.secret_values


def test_a_database_file_may_be_named_from_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_DATABASE_URL", "sqlite:///data/mine.db")

    assert load_settings().database_path == tmp_path / "data" / "mine.db"


def test_settings_show_no_secret_when_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SECRET_KEY", "a long enough hunter2 passphrase")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")

    assert "hunter2" not in repr(load_settings())


def test_directories_that_are_not_there_are_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert missing_directories(Settings(secret_files=missing, archive_dir=tmp_path)) == (
        f"DRAGOMAN_SECRET_FILES names {missing}, which is not a directory",
    )
    assert len(missing_directories(Settings(secret_files=missing, archive_dir=missing))) == 2
    assert missing_directories(Settings()) == ()


def test_unknown_variables_are_told_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRAGOMAN_PROT", "DRAGOMAN_XYZZY", "DRAGOMAN_TEST_POSTGRES_URL", "DRAGOMAN_PORT"):
        monkeypatch.setenv(name, "1")

    typo, strange = unknown_variables()

    assert typo == "DRAGOMAN_PROT is not a setting; did you mean DRAGOMAN_PORT?"
    assert strange == "DRAGOMAN_XYZZY is not a setting and has no effect."


@pytest.mark.requirement("B12")
def test_started_processes_inherit_a_fixed_list_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TERM", "() { :; }; echo shell function")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("DRAGOMAN_SECRET_KEY", "a long enough passphrase")

    environment = base_process_environment()

    assert environment.items() >= {"PATH": "/usr/bin", "LANG": "C.UTF-8"}.items()
    assert environment.keys() <= {"HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG"}


@pytest.mark.requirement("D3")
def test_a_search_provider_is_set_with_its_address_and_a_key_that_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().search_provider == "duckduckgo"
    monkeypatch.setenv("DRAGOMAN_SEARCH_PROVIDER", "Brave")
    monkeypatch.setenv("DRAGOMAN_BRAVE_API_KEY", "BSA-key-of-brave")
    monkeypatch.setenv("DRAGOMAN_TAVILY_API_KEY", "tvly-key-of-tavily")
    monkeypatch.setenv("DRAGOMAN_BRAVE_BASE_URL", "http://127.0.0.1:9000/")

    settings = load_settings()

    assert settings.search_provider == "brave"
    assert settings.brave_base_url == "http://127.0.0.1:9000"
    assert set(settings.secret_values) >= {"BSA-key-of-brave", "tvly-key-of-tavily"}
    assert "key-of" not in repr(settings)
    assert unknown_variables() == ()


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(("provider", "missing"), [("brave", "BRAVE"), ("tavily", "TAVILY")])
def test_a_keyed_search_provider_without_its_key_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, provider: str, missing: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_SEARCH_PROVIDER", provider)

    with pytest.raises(
        SettingsError, match=f"DRAGOMAN_{missing}_API_KEY is missing: DRAGOMAN_SEARCH_PROVIDER={provider}"
    ):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "value"), [("DRAGOMAN_SEARCH_PROVIDER", "google"), ("DRAGOMAN_TAVILY_BASE_URL", "api.tavily.com")]
)
def test_a_wrong_search_setting_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError, match=f"{variable} must be"):
        load_settings()


def test_ports_and_paths_of_started_servers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().allowed_ports is None
    for text, ports in (("none", ()), ("443, 80", (443, 80)), ("ALL", None)):
        monkeypatch.setenv("DRAGOMAN_MCP_PORTS", text)
        assert load_settings().allowed_ports == ports
    monkeypatch.setenv("DRAGOMAN_MCP_WRITABLE", "/srv/a, /srv/b")
    assert load_settings().writable_paths == (Path("/srv/a"), Path("/srv/b"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRAGOMAN_MCP_PORTS", "https"),
        ("DRAGOMAN_MCP_PORTS", "0"),
        ("DRAGOMAN_MCP_READABLE", "tools"),
        ("DRAGOMAN_MCP_SANDBOX", "on"),
        ("DRAGOMAN_MCP_PROCESS_LIMITS", "processes=many"),
    ],
)
def test_wrong_settings_of_started_servers_are_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings()
