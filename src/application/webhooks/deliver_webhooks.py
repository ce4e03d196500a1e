"""DeliverWebhooks: claims due deliveries, signs and sends them, and stores the results."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from application.system.periodic import when_due
from application.system.ports import Clock
from application.system.wakeups import Subscription, Wakeups
from application.webhooks.ports import (
    WEBHOOKS_TOPIC,
    ClaimedDelivery,
    Lane,
    ServiceAddress,
    WebhookDeliveryStore,
    WebhookSender,
)
from application.webhooks.signing_secrets import NoAddress, SigningSecrets
from application.webhooks.waiting_links import with_inbox_links, with_links
from domain.errors import ServiceError
from domain.webhooks.delivery import NOTICES, Attempt, SendFailure, WebhookDelivery, WebhookEvent
from domain.webhooks.signing import signed_headers

logger = logging.getLogger(__name__)

REREAD_S = 30.0
"""How often deliveries are checked without a signal."""
LEASE_S = 60.0
"""How long an attempt may take before another process starts the next one. The sender's timeout is
much shorter."""
CONCURRENCY = 32
PER_LANE = 4
"""Most concurrent attempts of one organization at one receiver, so that a dead receiver delays no
other."""
STOP_S = 3.0
"""How long running attempts may take when the service stops."""
_RETRY_S = 1.0


class DeliverWebhooks:
    """Rules:
    - At-least-once delivery: one process owns a delivery until its lease expires, then another may
      claim it.
    - Nothing is locked or open in the database while a receiver is being awaited.
    - A slow or dead receiver occupies only its own few slots.
    - What tells that a run waits has links to what waits, at the service's address as it is when it
      is sent.
    """

    def __init__(
        self,
        *,
        deliveries: WebhookDeliveryStore,
        secrets: SigningSecrets,
        sender: WebhookSender,
        address: ServiceAddress,
        wakeups: Wakeups,
        clock: Clock,
        concurrency: int = CONCURRENCY,
        per_lane: int = PER_LANE,
        stop_s: float = STOP_S,
        fraction: Callable[[], float] = random.random,  # chance, not secrecy
    ) -> None:
        self._deliveries = deliveries
        self._secrets = secrets
        self._sender = sender
        self._address = address
        self._wakeups = wakeups
        self._clock = clock
        self._concurrency = concurrency
        self._per_lane = per_lane
        self._stop_s = stop_s
        self._fraction = fraction
        self._under_way: dict[asyncio.Task[None], Lane] = {}
        self._look = asyncio.Event()

    async def execute(self) -> int:
        """Attempt everything that is due now; returns the number of attempts."""
        attempts = 0
        while await self._begin_due() and self._under_way:
            attempts += len(self._under_way)
            await asyncio.wait(self._under_way)
            await asyncio.sleep(0)  # lets finished tasks be removed
        return attempts

    async def recover(self) -> int:
        """Release the deliveries that a former process was attempting; only if no other process can
        exist. Returns how many."""
        return await self._deliveries.release_all(at=self._clock.now())

    async def keep(self) -> None:
        """Deliver as events arrive and pauses end, until cancelled; running attempts may then still
        end."""
        async with self._wakeups.subscribe(WEBHOOKS_TOPIC) as signalled:
            listening = asyncio.create_task(self._listen(signalled), name="webhooks-signals")
            try:
                await when_due(self._step, task="webhooks", retry_s=_RETRY_S, wait=self._signalled)
            finally:
                listening.cancel()
                await self._finish()

    async def _step(self) -> float:
        self._look.clear()
        await self._begin_due()
        return await self._time_to_next()

    async def _signalled(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._look.wait()

    async def _listen(self, signalled: Subscription) -> None:
        while True:
            await signalled.wait(REREAD_S)
            self._look.set()

    async def _begin_due(self) -> bool:
        """Start as many attempts as fit; returns whether any was started."""
        begun = False
        while room := self._concurrency - len(self._under_way):
            due_at = await self._deliveries.next_due(but=self._full_lanes())
            now = self._clock.now()
            if due_at is None or due_at > now:
                break
            claimed = await self._deliveries.claim(
                at=now,
                until=now + timedelta(seconds=LEASE_S),
                limit=room,
                per_lane=self._per_lane,
                busy=Counter(self._under_way.values()),
            )
            if not claimed:
                break  # another process was faster
            for each in claimed:
                task = asyncio.create_task(self._deliver(each), name=f"webhook {each.delivery.id}")
                self._under_way[task] = each.lane
                task.add_done_callback(self._over)
            begun = True
        return begun

    async def _time_to_next(self) -> float:
        """Seconds to sleep unless a slot becomes free. What is still due belongs to another process
        at the moment."""
        if len(self._under_way) >= self._concurrency:
            return REREAD_S
        due_at = await self._deliveries.next_due(but=self._full_lanes())
        if due_at is None:
            return REREAD_S
        left_s = (due_at - self._clock.now()).total_seconds()
        return min(left_s if left_s > 0 else _RETRY_S, REREAD_S)

    def _full_lanes(self) -> frozenset[Lane]:
        busy = Counter(self._under_way.values())
        return frozenset(lane for lane, count in busy.items() if count >= self._per_lane)

    def _over(self, task: "asyncio.Task[None]") -> None:
        del self._under_way[task]
        self._look.set()

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        taken = claimed.delivery
        try:
            attempt = await self._attempt(claimed)
        except asyncio.CancelledError:
            await self._settle(taken, taken.given_back(at=self._clock.now()))
            raise
        await self._settle(taken, taken.attempted(attempt, at=self._clock.now(), fraction=self._fraction()))

    async def _attempt(self, claimed: ClaimedDelivery) -> Attempt:
        delivery = claimed.delivery
        organization_id = delivery.organization_id
        try:
            webhook = claimed.webhook or await self._secrets.inbox(organization_id, delivery.receiver)
            keys = await self._secrets.of(organization_id, webhook)
        except NoAddress:
            return Attempt(failure=SendFailure.NO_ADDRESS)
        except ValueError:
            return Attempt(failure=SendFailure.UNSIGNED)
        except ServiceError:
            logger.exception("signing secret of a webhook could not be read", extra=_ids(delivery))
            return Attempt(failure=SendFailure.INTERNAL)
        body = _body(claimed, self._address.url).encode()
        headers = {**claimed.headers, **signed_headers(delivery.id, self._clock.now(), body, keys)}
        try:
            return await self._sender.send(webhook.url, headers, body)
        except Exception as error:  # noqa: BLE001  # message and traceback may contain the URL
            logger.error("webhook could not be sent: %s", type(error).__name__, extra=_ids(delivery))
            return Attempt(failure=SendFailure.INTERNAL)

    async def _settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> None:
        try:
            stored = await self._deliveries.settle(taken, after)
        except Exception:
            # The delivery stays claimed, and is attempted again after its lease expires.
            logger.exception("result of a webhook delivery could not be stored", extra=_ids(taken))
            return
        level = logging.INFO if after.last_error is None else logging.WARNING
        logger.log(level, "webhook %s: %s", after.event, after.state, extra={**_ids(after), "stored": stored})

    async def _finish(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=self._stop_s)
        left = list(self._under_way)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _body(claimed: ClaimedDelivery, address: str | None) -> str:
    delivery = claimed.delivery
    if delivery.event in NOTICES:
        return with_inbox_links(claimed.body, address)
    links_people = delivery.event is WebhookEvent.RUN_REQUIRES_ACTION and delivery.push_config_id is None
    return with_links(claimed.body, address) if links_people else claimed.body


def _ids(delivery: WebhookDelivery) -> dict[str, object]:
    return {
        "delivery_id": delivery.id,
        "run_id": delivery.run_id,
        "organization_id": delivery.organization_id,
        "attempt": delivery.attempts,
        "receiver": delivery.receiver,
        "error": delivery.last_error,
    }
