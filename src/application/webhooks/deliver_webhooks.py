"""Delivers webhooks: takes what is due, signs it, sends it, and stores what became of it."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from application.system.ports import Clock
from application.system.wakeups import Subscription, Wakeups
from application.webhooks.ports import WEBHOOKS_TOPIC, ClaimedDelivery, Lane, WebhookDeliveryStore, WebhookSender
from application.webhooks.signing_secrets import SigningSecrets
from domain.errors import ServiceError
from domain.webhooks.delivery import Attempt, SendFailure, WebhookDelivery
from domain.webhooks.signing import signed_headers

logger = logging.getLogger(__name__)

REREAD_S = 30.0
"""How often deliveries are looked for even if nobody rang."""
LEASE_S = 60.0
"""How long an attempt may take before another process begins the next; the sender gives up long before."""
CONCURRENCY = 32
PER_LANE = 4
"""How many attempts of one organization at one receiver run at a time, so that a dead receiver holds up nobody else."""
STOP_S = 3.0
"""How long attempts under way may take when the service stops."""
_RETRY_S = 1.0


class DeliverWebhooks:
    """Rules: a delivery is one process's at a time, and another's once that one must be lost (at least once, never in
    doubt); nothing is locked or kept open in the database while a receiver is waited for; a receiver that is slow or dead
    takes up its own few places only."""

    def __init__(
        self,
        *,
        deliveries: WebhookDeliveryStore,
        secrets: SigningSecrets,
        sender: WebhookSender,
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
        self._wakeups = wakeups
        self._clock = clock
        self._concurrency = concurrency
        self._per_lane = per_lane
        self._stop_s = stop_s
        self._fraction = fraction
        self._under_way: dict[asyncio.Task[None], Lane] = {}
        self._look = asyncio.Event()

    async def execute(self) -> int:
        """Attempt everything that is due now; returns how many attempts that were."""
        attempts = 0
        while await self._begin_due() and self._under_way:
            attempts += len(self._under_way)
            await asyncio.wait(self._under_way)
            await asyncio.sleep(0)  # lets those that ended leave
        return attempts

    async def recover(self) -> int:
        """Go on at once with what a former process was attempting; only where no other process can be. Returns how many."""
        return await self._deliveries.release_all(at=self._clock.now())

    async def keep(self) -> None:
        """Deliver as events come and pauses end, until cancelled; attempts under way may then still end."""
        async with self._wakeups.subscribe(WEBHOOKS_TOPIC) as rung:
            listening = asyncio.create_task(self._listen(rung), name="webhooks-rung")
            try:
                while True:
                    self._look.clear()
                    try:
                        await self._begin_due()
                        wait_s = await self._time_to_next()
                    except Exception:
                        logger.exception("webhook deliveries could not be read")
                        wait_s = _RETRY_S
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait_s):
                            await self._look.wait()
            finally:
                listening.cancel()
                await self._finish()

    async def _listen(self, rung: Subscription) -> None:
        while True:
            await rung.wait(REREAD_S)
            self._look.set()

    async def _begin_due(self) -> bool:
        """Begin attempts, as many as there is room for; whether any was."""
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
                break  # somebody was faster
            for each in claimed:
                task = asyncio.create_task(self._deliver(each), name=f"webhook {each.delivery.id}")
                self._under_way[task] = each.lane
                task.add_done_callback(self._over)
            begun = True
        return begun

    async def _time_to_next(self) -> float:
        """Seconds to sleep unless a place becomes free. What is due still is another process's at this moment."""
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
        try:
            keys = await self._secrets.of(delivery.organization_id, claimed.webhook)
        except ValueError:
            return Attempt(failure=SendFailure.UNSIGNED)
        except ServiceError:
            logger.exception("a webhook's signing secret could not be read", extra=_ids(delivery))
            return Attempt(failure=SendFailure.INTERNAL)
        body = claimed.body.encode()
        headers = signed_headers(delivery.id, self._clock.now(), body, keys)
        try:
            return await self._sender.send(claimed.webhook.url, headers, body)
        except Exception as error:  # noqa: BLE001  # its words, and its traceback's, may hold the URL
            logger.error("a webhook could not be sent: %s", type(error).__name__, extra=_ids(delivery))
            return Attempt(failure=SendFailure.INTERNAL)

    async def _settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> None:
        try:
            stored = await self._deliveries.settle(taken, after)
        except Exception:
            # It stays taken, and is attempted again when that has run out.
            logger.exception("what became of a webhook could not be stored", extra=_ids(taken))
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


def _ids(delivery: WebhookDelivery) -> dict[str, object]:
    return {
        "delivery_id": delivery.id,
        "run_id": delivery.run_id,
        "organization_id": delivery.organization_id,
        "attempt": delivery.attempts,
        "receiver": delivery.receiver,
        "error": delivery.last_error,
    }
