"""Dataclasses as rows and as JSON columns: what is written, and what of older versions is still
read."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from domain.agents.agent import AgentConfig
from domain.json_value import JsonObject
from domain.mcp.auth import (
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BearerAuth,
    ClientCredentialsAuth,
    ServerAuth,
    SubjectToken,
    TokenExchangeAuth,
)
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.rate_limit import RateLimit
from domain.runs.limits import LimitSettings
from domain.secrets.secret import SecretRef
from domain.tools.capabilities import ToolType
from infrastructure.persistence.columns.fields import json_codec, json_fields, row_fields, tagged
from infrastructure.runtime.json_text import decode, encode

AT = datetime(2026, 3, 1, 12, 30, 0, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    text: str
    kind: ToolType
    at: datetime
    price: Decimal
    data: JsonObject
    limit: RateLimit | None = None
    names: tuple[str, ...] = ()


NOTE = Note(text="a", kind=ToolType.CODE_EXECUTION, at=AT, price=Decimal("0.10"), data={"x": [None]})


def test_json_has_moments_as_microseconds_money_as_text_and_enums_by_value() -> None:
    notes = json_fields(Note)

    assert notes.write(NOTE) == {
        "text": "a",
        "kind": "code_execution",
        "at": 1772368200000005,
        "price": "0.10",
        "data": {"x": [None]},
        "limit": None,
        "names": [],
    }
    assert notes.read(decode(encode(notes.write(NOTE)))) == NOTE


def test_in_rows_moments_and_money_are_left_to_the_columns_and_fields_may_have_other_names() -> None:
    notes = row_fields(Note, renamed={"text": "words"}, without={"data"})
    row = notes.write(NOTE)

    assert (row["words"], row["at"], row["price"]) == ("a", AT, Decimal("0.10"))
    assert "data" not in row
    assert notes.of_row(SimpleNamespace(**row), data=NOTE.data) == NOTE  # type: ignore[arg-type]


def test_a_missing_key_has_the_default_and_an_unknown_one_is_ignored() -> None:
    stored = {"text": "a", "kind": "code_execution", "at": 0, "price": "1", "data": {}, "later": True}

    read = json_fields(Note).read(stored)

    assert (read.limit, read.names) == (None, ())


def test_a_type_without_a_stored_form_is_refused_when_the_fields_are_described() -> None:
    with pytest.raises(TypeError, match="has no codec"):
        json_fields(McpServerConfig)


def test_an_agent_reads_back_as_it_was_written() -> None:
    config = AgentConfig(
        name="helper",
        model="openai:gpt-5-mini",
        tools=(ToolType.CODE_EXECUTION,),
        tool_allowlist=(),
        tool_policies=ToolPolicies(rules=(("*", ToolRule(decision=Verdict.DENY)),)),
        limits=LimitSettings(max_turns=3, max_cost_usd=Decimal("0.25")),
        daily_budget_usd=Decimal("1.50"),
    )
    fields = json_fields(AgentConfig, without={"canary_tokens"})
    written = fields.write(config)

    assert (written["limits"], written["daily_budget_usd"]) == ({"max_turns": 3, "max_cost_usd": "0.25"}, "1.50")
    assert fields.read(decode(encode(written)), canary_tokens=()) == config


def test_an_agent_of_before_policies_descriptions_and_budgets_is_read() -> None:
    stored: JsonObject = {
        "name": "helper",
        "model": "openai:gpt-5-mini",
        "fallback_models": [],
        "instructions": "",
        "tools": [],
        "mcp_servers": ["git"],
        "tool_allowlist": None,
        "limits": {"max_turns": 3},
        "enabled": True,
    }

    read = json_fields(AgentConfig, without={"canary_tokens"}).read(stored, canary_tokens=())

    assert read == AgentConfig(
        name="helper", model="openai:gpt-5-mini", mcp_servers=("git",), limits=LimitSettings(max_turns=3)
    )


@pytest.mark.parametrize(
    ("auth", "stored"),
    [
        (BearerAuth(token="t"), {"type": "bearer", "token": "t"}),
        (
            ApiKeyAuth(header="X-Key", value=SecretRef("key")),
            {"type": "api_key", "header": "X-Key", "value": {"secret": "key"}},
        ),
        (
            ClientCredentialsAuth(client_id="me", client_secret="s", scopes=("a", "b")),
            {
                "type": "oauth_client_credentials",
                "client_id": "me",
                "client_secret": "s",
                "private_key": None,
                "key_id": None,
                "scopes": ["a", "b"],
                "issuer": None,
            },
        ),
        (
            TokenExchangeAuth(audience="tickets", subject_token=SubjectToken.ACCESS_TOKEN),
            {
                "type": "oauth_token_exchange",
                "client_id": None,
                "client_secret": None,
                "private_key": None,
                "key_id": None,
                "scopes": [],
                "issuer": None,
                "audience": "tickets",
                "resource": None,
                "subject_token": "access_token",
            },
        ),
        (
            AuthorizationCodeAuth(),
            {
                "type": "oauth_authorization_code",
                "client_id": None,
                "client_secret": None,
                "scopes": [],
                "issuer": None,
            },
        ),
    ],
)
def test_one_of_several_dataclasses_has_its_type_beside_its_fields(auth: ServerAuth, stored: JsonObject) -> None:
    write, read = tagged(
        bearer=BearerAuth,
        api_key=ApiKeyAuth,
        oauth_client_credentials=ClientCredentialsAuth,
        oauth_authorization_code=AuthorizationCodeAuth,
        oauth_token_exchange=TokenExchangeAuth,
    )

    assert write(auth) == stored
    assert read(stored) == auth


def test_a_server_of_before_packages_and_rate_limits_is_read() -> None:
    stored: JsonObject = {
        "slug": "git",
        "kind": "custom",
        "command": "git-mcp",
        "args": ["--all"],
        "url": None,
        "trusted": False,
        "isolation": "run",
        "output_validation": "warn",
        "timeout_s": 30.0,
        "idle_timeout_s": 300.0,
        "max_response_bytes": 4194304,
        "max_concurrency": 8,
        "enabled": True,
        "secrets": ["token"],
    }

    read = json_fields(McpServerConfig, without=("env", "headers", "auth")).read(stored, env={"T": SecretRef("token")})

    expected = McpServerConfig(
        slug="git", kind=McpServerKind.CUSTOM, command="git-mcp", args=("--all",), env={"T": SecretRef("token")}
    )
    assert read == expected


def test_only_stated_limits_are_written() -> None:
    write, read = json_codec(LimitSettings)

    assert write(LimitSettings(max_turns=5)) == {"max_turns": 5}
    assert read({}) == LimitSettings()
