"""Every metric of this process. Labels are few and name no organization, agent or server: operators
read the page, and each combination of labels takes memory permanently."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

MAX_MODELS = 100
"""Most models with their own label. Organizations name models, so their number is
unbounded."""
OTHER_MODELS = "other"

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Instruments:
    """The metrics in a separate registry. Names follow Prometheus' conventions: base units,
    `_total` for counters."""

    def __init__(self, *, version: str) -> None:
        registry = CollectorRegistry(auto_describe=True)
        self.registry = registry
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        info = Gauge("dragoman_build_info", "1, labelled with the running version.", ["version"], registry=registry)
        info.labels(version).set(1)
        self.runs_ended = Counter(
            "dragoman_runs_ended", "Runs this process ended, by status.", ["status"], registry=registry
        )
        self.workflow_runs_ended = Counter(
            "dragoman_workflow_runs_ended",
            "Workflow runs this process ended, by status.",
            ["status"],
            registry=registry,
        )
        self.run_active = Histogram(
            "dragoman_run_active_seconds",
            "Time in which ended runs were executed, without waiting in the queue or for people.",
            registry=registry,
            buckets=_SLOW,
        )
        self.run_start_delay = Histogram(
            "dragoman_run_start_delay_seconds",
            "Time from a run's creation to its first execution.",
            registry=registry,
            buckets=_FAST,
        )
        self.turn = Histogram(
            "dragoman_turn_seconds",
            "A turn of a run: the model call and its tool calls.",
            registry=registry,
            buckets=_SLOW,
        )
        self.model_call = Histogram(
            "dragoman_model_call_seconds",
            "Calls of models, by model and outcome.",
            ["model", "outcome"],
            registry=registry,
            buckets=_SLOW,
        )
        self.tokens = Counter(
            "dragoman_tokens",
            "Tokens used, by model and kind (input, output, cached).",
            ["model", "kind"],
            registry=registry,
        )
        self.cost = Counter(
            "dragoman_cost_usd", "Cost of model calls with a known price.", ["model"], registry=registry
        )
        self.tool_call = Histogram(
            "dragoman_tool_call_seconds",
            "Tool calls of runs, by type of tool and outcome (ok, error, blocked).",
            ["type", "outcome"],
            registry=registry,
            buckets=_SLOW,
        )
        self.gateway_call = Histogram(
            "dragoman_gateway_call_seconds",
            "Tool calls of gateway sessions, by type of tool and outcome (ok, error, blocked).",
            ["type", "outcome"],
            registry=registry,
            buckets=_SLOW,
        )
        self.leases_lost = Counter(
            "dragoman_leases_lost", "Leases of runs that this process held and lost.", registry=registry
        )
        self.runs_recovered = Counter(
            "dragoman_runs_recovered", "Runs recovered after another worker's lease expired.", registry=registry
        )
        self.event_lag = Histogram(
            "dragoman_event_lag_seconds",
            "Time from storing an event to sending it to a stream that was open then.",
            registry=registry,
            buckets=_FAST,
        )
        self.requests = Counter(
            "dragoman_http_requests",
            "Requests of the API, by method, route and status.",
            ["method", "path", "status"],
            registry=registry,
        )
        self.request = Histogram(
            "dragoman_http_request_seconds",
            "Duration of requests, by method and route; long polls and streams last until their clients leave.",
            ["method", "path"],
            registry=registry,
            buckets=_FAST,
        )
        self.runs_in_hand = Gauge("dragoman_runs_in_hand", "Runs this process is executing.", registry=registry)
        self.servers = Gauge(
            "dragoman_mcp_servers",
            "MCP servers that this process uses, by state.",
            ["state"],
            registry=registry,
        )
        self.breakers = Gauge(
            "dragoman_mcp_breakers",
            "Circuit breakers of MCP servers that are not closed, by state.",
            ["state"],
            registry=registry,
        )
        self.loop_hold = Histogram(
            "dragoman_event_loop_hold_seconds",
            "Times in which the event loop answered nothing for at least 100 ms.",
            registry=registry,
            buckets=(0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
        )
        self.audit_sent = Counter(
            "dragoman_siem_audit_entries_sent",
            "Audit entries that the SIEM accepted from this process.",
            registry=registry,
        )
        self.audit_failures = Counter(
            "dragoman_siem_failures", "Batches of audit entries that the SIEM did not accept.", registry=registry
        )
        self.backlog = BacklogGauges(registry)
        self._models: dict[str, str] = {}

    def model_label(self, model: str) -> str:
        """The label of a model: its name, or `other` beyond MAX_MODELS models."""
        label = self._models.get(model)
        if label is None:
            label = model if len(self._models) < MAX_MODELS else OTHER_MODELS
            if label is model:
                self._models[model] = label
        return label


class BacklogGauges:
    """The unfinished work of all processes; every process reports the same."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.readable = Gauge(
            "dragoman_database_up", "1 if the database could be read for this page, else 0.", registry=registry
        )
        self.runs = Gauge("dragoman_runs", "Runs that have not ended, by status.", ["status"], registry=registry)
        self.workflow_runs = Gauge(
            "dragoman_workflow_runs", "Workflow runs that have not ended, by status.", ["status"], registry=registry
        )
        self.queue_age = Gauge(
            "dragoman_run_queue_age_seconds",
            "Age of the oldest run that no worker has claimed, including runs that wait for a busy thread.",
            registry=registry,
        )
        self.approvals = Gauge("dragoman_approvals_pending", "Approvals without a decision.", registry=registry)
        self.deliveries = Gauge("dragoman_webhook_deliveries_open", "Unfinished webhook deliveries.", registry=registry)
        self.delivery_delay = Gauge(
            "dragoman_webhook_delay_seconds",
            "Delay of the most overdue webhook delivery.",
            registry=registry,
        )
        self.audit_lag = Gauge(
            "dragoman_siem_lag_seconds",
            "Age of the oldest sealed audit entry that was not sent to the SIEM; 0 without a SIEM.",
            registry=registry,
        )
