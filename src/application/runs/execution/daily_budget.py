"""Keeps runs within the daily budgets of their organization, their agent and their user, across all
workers."""

from decimal import Decimal
from typing import NamedTuple

from application.identity.ports import IdentityStore
from application.models.ports import PriceTable
from application.runs.execution.ask_model import BUDGETED_OUTPUT_TOKENS, CLOSING_OUTPUT_TOKENS
from application.runs.execution.run_session import RunSession
from application.system.ports import Clock
from application.usage.ports import Reservation, Reservations
from domain.identity.organization import Organization
from domain.ids import ApiKeyId, UserId
from domain.runs.usage import ModelUsage


class _Budgets(NamedTuple):
    of_organization_usd: Decimal | None
    of_agent_usd: Decimal | None
    of_user_usd: Decimal | None
    user_id: UserId | None
    with_keys: bool


class DailyBudgets:
    """Rules:
    - Before each model call of a run with a daily budget, its cost and that of a closing turn
      are reserved. A call without a reservation is not made.
    - After the call, the closing turn's share stays reserved.
    - A run counts for the user who started it, with whose accounts its schedule runs, or, if the
      organization counts keys for users, who made the key that started it.
    - Days are UTC days. Models without a price count as 0. Without a budget nothing is reserved.
    """

    def __init__(
        self, *, reservations: Reservations, identities: IdentityStore, prices: PriceTable, clock: Clock
    ) -> None:
        self._reservations = reservations
        self._identities = identities
        self._prices = prices
        self._clock = clock

    async def admit_turn(self, session: RunSession, *, input_tokens: int) -> bool:
        """Whether an ordinary turn over these tokens is allowed. Raises LeaseLost."""
        budgets = await self._budgets(session)
        if budgets is None:
            return True
        closing = self._cost(session, input_tokens, CLOSING_OUTPUT_TOKENS)
        turn = self._cost(session, input_tokens, BUDGETED_OUTPUT_TOKENS)
        return await self._reserve(session, budgets, turn + closing, kept=closing)

    async def admit_closing(self, session: RunSession, *, input_tokens: int) -> bool:
        """Whether the closing turn is allowed, including its reservation. Raises LeaseLost."""
        budgets = await self._budgets(session)
        if budgets is None:
            return True
        closing = self._cost(session, input_tokens, CLOSING_OUTPUT_TOKENS)
        return await self._reserve(session, budgets, closing, kept=Decimal(0))

    async def _budgets(self, session: RunSession) -> _Budgets | None:
        """The budgets as read at the start of the turn; None without any."""
        organization = session.organization
        of_organization = None if organization is None else organization.daily_budget_usd
        of_agent = session.agent.config.daily_budget_usd
        with_keys = organization is not None and organization.keys_count_for_users
        user_id = None if organization is None else await self._user(organization, session.run.requested_by)
        of_user = None if organization is None or user_id is None else organization.budget_of(user_id)
        if of_organization is None and of_agent is None and of_user is None:
            session.kept_reserve_usd = None
            return None
        return _Budgets(of_organization, of_agent, of_user, user_id, with_keys)

    async def _user(self, organization: Organization, starter: ApiKeyId | None) -> UserId | None:
        """The user for whom a run counts, if any user has a budget. Who made a key is read only
        where keys count."""
        if starter is None or not organization.has_user_budgets:
            return None
        user_id = organization.user_behind(starter, None)
        if user_id is not None or not organization.keys_count_for_users:
            return user_id
        return (await self._identities.creators(organization.id, (starter,))).get(starter)

    async def _reserve(self, session: RunSession, budgets: _Budgets, amount: Decimal, *, kept: Decimal) -> bool:
        wanted = Reservation(
            agent_id=session.agent.id,
            day=self._clock.now().date(),
            amount_usd=amount,
            organization_budget_usd=budgets.of_organization_usd,
            agent_budget_usd=budgets.of_agent_usd,
            user_id=None if budgets.of_user_usd is None else budgets.user_id,
            with_keys=budgets.with_keys,
            user_budget_usd=budgets.of_user_usd,
        )
        session.kept_reserve_usd = kept
        return await self._reservations.reserve(session.lease, wanted)

    def _cost(self, session: RunSession, input_tokens: int, output_tokens: int) -> Decimal:
        """The highest cost among the models, because a fallback may answer."""
        call = ModelUsage(input_tokens=input_tokens, output_tokens=output_tokens)
        models = {session.model, *session.agent.config.fallback_models}
        return max((self._prices.cost_usd(model, call) or Decimal(0) for model in models), default=Decimal(0))
