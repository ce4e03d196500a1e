"""The production container for tests: its own providers, but for what a test looks into or holds
back."""

from dataclasses import fields
from pathlib import Path

from application.system.lazy import LazyClosable
from domain.ids import OrganizationId
from domain.runs.model_settings import ModelSettings
from infrastructure.container import Container
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from infrastructure.settings import Settings
from infrastructure.tracing.addresses import BackendTraceAddresses
from tests.contract.stores import Stores
from tests.doubles.audit_chain import GivenSealKeys
from tests.doubles.authorizer import InMemoryAuthorizer
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_installer import InMemoryMcpInstaller
from tests.doubles.people import AbsentIdentityProviders
from tests.doubles.plain_text_extractor import PlainTextExtractor
from tests.doubles.provider_places import TalkingProviders
from tests.doubles.secrets import InMemorySecretVault
from tests.doubles.surroundings import START, SequentialIds, StepClock
from tests.unit.application.runs.doubles import FlatPrices

BOX_KEY = "a key of the tests"
SEAL_KEY = b"a key of seals in tests, 32 long"
MODEL = "scripted:demo.yaml"
NO_HOME = Path("/nonexistent/home")

_PROVIDERS = {
    "identity": "identities",
    "audit": "audit_log",
    "model_providers": "model_provider_store",
    "due_schedules": "schedules",
    "oauth": "oauth_store",
    "lost_calls": "gateway_approvals",
    "expired_notes": "gateway_notes",
    "usage": "usage_store",
    "reservations": "usage_store",
    "webhooks": "webhook_deliveries",
    "workflow_journal": "workflow_runs",
}
"""Fields of `Stores` whose provider has another name."""
_ROWS = {
    "agents": "agent_rows",
    "groups": "group_rows",
    "organization_groups": "organization_group_rows",
    "servers": "server_rows",
    "catalogs": "catalog_rows",
    "organizations": "organization_rows",
    "console_sessions": "session_rows",
    "secrets": "secret_rows",
    "person_secrets": "person_secret_rows",
    "model_providers": "model_provider_rows",
}
"""Fields of `Stores` that the container has a cache in front of."""


class OneModel:
    """A `ModelDirectory` that knows MODEL."""

    async def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        return None if model == MODEL else f"there is no model {model!r}"

    async def not_taken(self, organization_id: OrganizationId, model: str, settings: ModelSettings) -> tuple[str, ...]:
        return ("seed",) if settings.seed is not None else ()


def the_settings(**given: object) -> Settings:
    """Those of tests: no HOME, so no database either."""
    own = {"home": NO_HOME, "secret_key": BOX_KEY, "public_url": "https://agents.example.com"}
    return Settings.model_validate({**own, **given})


def a_container(settings: Settings | None = None, **doubles: object) -> Container:
    """The container with each of the `doubles` in the place of the provider of its name. Times and
    ids are in order; models, prices, MCP servers, installer and authorizations are doubles."""
    container = Container(settings=settings or the_settings())
    clock, ids = StepClock(step_s=0.01), SequentialIds()
    container.override_providers(
        clock=clock,
        ids=ids,
        routed_models=OneModel(),
        lazy_providers=LazyClosable(TalkingProviders),
        prices=FlatPrices(),
        native_tools={},
        mcp_installer=InMemoryMcpInstaller(clock=clock, ids=ids),
        identity_client=AbsentIdentityProviders(),
        oauth=InMemoryAuthorizer(expires_at=START),
        text_extractor=PlainTextExtractor(),
        expressions=JmesPathExpressions(),
        seal_keys=GivenSealKeys(SEAL_KEY),
        secret_vault=InMemorySecretVault(),
        trace_addresses=BackendTraceAddresses(enabled=True, web="https://traces.example.com"),
    )
    connections = doubles.setdefault("connections", InMemoryMcpConnections())
    doubles.setdefault("resource_watches", connections)
    container.override_providers(**doubles)
    return container


def put_into(container: Container, stores: Stores) -> None:
    """Let the container use these stores, behind its own caches."""
    container.override_providers(
        **{_ROWS.get(name, _PROVIDERS.get(name, name)): getattr(stores, name) for name in _names()}
    )


def stores_of(container: Container) -> Stores:
    """The stores that its use cases have, so that caches know what a test writes."""
    return Stores(**{name: container.providers[_PROVIDERS.get(name, name)]() for name in _names()})


def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Stores))
