"""Selects the model of a run, and checks that its limits can be enforced."""

from application.agents.model_settings_check import settings_violations
from application.agents.ports import ModelDirectory
from application.models.cost_limit import cost_limit_violations
from application.models.ports import PriceTable
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError, Violation, invalid
from domain.identity.organization import Organization
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings


async def model_of_run(
    agent: Agent,
    *,
    wanted: str | None,
    limits: LimitSettings,
    organization: Organization | None,
    models: ModelDirectory,
    prices: PriceTable,
    settings: ModelSettings = NO_SETTINGS,
) -> str:
    """The requested model, otherwise the agent's. Raises FORBIDDEN `model_not_allowed` unless the
    agent or the organization lists it, INVALID `model_unavailable` if it cannot be reached,
    `model_settings_invalid` if it does not take the run's settings, `limits_invalid` for a cost
    limit without a price of the model."""
    of_organization = () if organization is None else organization.models
    model = wanted or agent.config.model
    if model not in agent.config.models and model not in of_organization:
        raise ServiceError(
            "model_not_allowed",
            ErrorKind.FORBIDDEN,
            f"The model {model!r} is neither the agent's nor one of its fallbacks nor one of the organization's: "
            f"{', '.join((*agent.config.models, *of_organization))}.",
        )
    problem = await models.problem_with(agent.organization_id, model)
    if problem is not None:
        raise invalid(
            "model_unavailable", f"The model {model!r} cannot be used.", Violation(path="model", message=problem)
        )
    refused = settings_violations(model, await models.not_taken(agent.organization_id, model, settings))
    if refused:
        raise invalid("model_settings_invalid", "The model settings are not valid.", *refused)
    narrowed = agent.config.limits.narrowed_by(limits)
    if organization is not None:
        narrowed = narrowed.narrowed_by(organization.limits)
    unenforceable = cost_limit_violations(
        prices, narrowed.max_cost_usd, dict.fromkeys((model, *agent.config.fallback_models))
    )
    if unenforceable:
        raise invalid("limits_invalid", "A limit of the run cannot be enforced.", *unenforceable)
    return model
