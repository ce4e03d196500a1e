"""PutPushConfig: send the states of a task to an address."""

from dataclasses import dataclass

from application.a2a.ports import PushConfigStore
from application.audit.entries import audit_entry
from application.runs.ports import RunReader
from application.runs.resume_run import require_own_or_operator
from application.system.ports import Clock, IdSource
from application.webhooks.webhook_check import WebhookCheck
from domain.a2a.push import MAX_CONFIGS, PushConfig, PushTarget, too_many_configs
from domain.audit.event import AuditAction
from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId, derived_id
from domain.json_value import canonical_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class PutPushConfigCommand:
    """Without a `config_id`, the config has one of its content."""

    principal: Principal
    run_id: RunId
    target: PushTarget
    config_id: str = ""


class PutPushConfig:
    """Rules:
    - Requires `runner` for tasks of the caller, `operator` for others.
    - The address is checked as that of a webhook is.
    - The same config again changes nothing; another one with its id replaces it.
    - Audited as `push_config.created`, with the receiver only.

    Raises: ServiceError run_not_found, forbidden, webhook_invalid, body_invalid,
    push_configs_limit.
    """

    def __init__(
        self, *, runs: RunReader, configs: PushConfigStore, webhooks: WebhookCheck, clock: Clock, ids: IdSource
    ) -> None:
        self._runs = runs
        self._configs = configs
        self._webhooks = webhooks
        self._clock = clock
        self._ids = ids

    async def require_usable(self, principal: Principal, target: PushTarget) -> None:
        """Raises as `execute` does for a target, before there is a task."""
        if found := target.violations():
            raise invalid("body_invalid", "The push notification config cannot be used.", *found)
        await self._webhooks.require_usable(principal.organization_id, target.webhook, path="pushNotificationConfig")

    async def require_room(self, command: PutPushConfigCommand) -> None:
        """Raises as `execute` does for a task, before a message of it takes effect."""
        await self._require_allowed(command)
        stored = await self._configs.of_run(command.principal.organization_id, command.run_id)
        if len(stored) >= MAX_CONFIGS and _id_of(command) not in {config.id for config in stored}:
            raise too_many_configs()

    async def execute(self, command: PutPushConfigCommand) -> PushConfig:
        principal, run_id, target = command.principal, command.run_id, command.target
        await self._require_allowed(command)
        await self.require_usable(principal, target)
        config = PushConfig(
            id=_id_of(command),
            organization_id=principal.organization_id,
            run_id=run_id,
            target=target,
            created_at=self._clock.now(),
        )
        audit = audit_entry(
            principal,
            AuditAction.PUSH_CONFIG_CREATED,
            config.id,
            ids=self._ids,
            at=config.created_at,
            run_id=run_id,
            details={"run_id": run_id, "receiver": target.webhook.receiver},
        )
        await self._configs.put(config, audit)
        return config

    async def _require_allowed(self, command: PutPushConfigCommand) -> None:
        principal, run_id = command.principal, command.run_id
        principal.require(Permission.RUNS_START)
        principal.require_self()
        run = principal.found(await self._runs.get(principal.organization_id, run_id), "run", run_id)
        require_own_or_operator(principal, run)


def _id_of(command: PutPushConfigCommand) -> str:
    target = command.target
    said = canonical_digest([target.url, target.token, target.scheme, target.credentials])
    return command.config_id or derived_id("push", command.run_id, said)
