"""Exports Prometheus' metric families over OTLP. Heavy to import: on the sending thread."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

from infrastructure.metrics.metrics_export import Families
from infrastructure.tracing.resource import process_resource

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_NANOSECONDS = 1_000_000_000
_Labels = tuple[tuple[str, str], ...]


class OtelMetricSink:
    """Sends the newest of several collections to a collector. A request takes at most `timeout_s`,
    including retries."""

    def __init__(self, *, endpoint: str, headers: Mapping[str, str], timeout_s: float = 5.0) -> None:
        self._began_at = time.time_ns()
        self._exporter = OTLPMetricExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/metrics",
            headers=dict(headers),
            timeout=timeout_s,
            compression=Compression.Gzip,
        )

    def send(self, collections: Sequence[Families]) -> bool:
        metrics = list(otel_metrics(collections[-1], began_at=self._began_at, at=time.time_ns()))
        scope = ScopeMetrics(scope=InstrumentationScope("dragoman"), metrics=metrics, schema_url="")
        resource = ResourceMetrics(resource=process_resource(), scope_metrics=[scope], schema_url="")
        return self._exporter.export(MetricsData(resource_metrics=[resource])) is MetricExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()


def otel_metrics(families: Families, *, began_at: int, at: int) -> Iterator[Metric]:
    """The families with samples: counters as monotonic sums, histograms with explicit bounds, all
    others as gauges. Times are in nanoseconds since 1970; a series begins when Prometheus' client
    created it, else at `began_at`."""
    for family in families:
        if not family.samples:
            continue
        data: Sum | Gauge | Histogram
        match family.type:
            case "counter":
                points = _numbers(family, f"{family.name}_total", began_at, at)
                data = Sum(data_points=points, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
            case "histogram":
                data = Histogram(data_points=_histograms(family, began_at, at), aggregation_temporality=_CUMULATIVE)
            case _:
                data = Gauge(data_points=_numbers(family, family.name, began_at, at))
        yield Metric(name=family.name, description=family.documentation, unit="", data=data)


def _numbers(family: Family, name: str, began_at: int, at: int) -> list[NumberDataPoint]:
    begun = _begun(family)
    return [
        NumberDataPoint(
            attributes=sample.labels,
            start_time_unix_nano=begun.get(_labels_of(sample), began_at),
            time_unix_nano=at,
            value=sample.value,
        )
        for sample in family.samples
        if sample.name == name
    ]


def _histograms(family: Family, began_at: int, at: int) -> list[HistogramDataPoint]:
    begun = _begun(family)
    buckets: dict[_Labels, list[tuple[float, float]]] = {}
    sums: dict[_Labels, float] = {}
    for sample in family.samples:
        labels = _labels_of(sample)
        if sample.name == f"{family.name}_bucket":
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name == f"{family.name}_sum":
            sums[labels] = sample.value
    return [
        HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=begun.get(labels, began_at),
            time_unix_nano=at,
            count=int(found[-1][1]),
            sum=sums.get(labels, 0.0),
            # Prometheus' buckets include those below them, OTLP's do not.
            bucket_counts=[int(upper - lower) for lower, upper in pairwise((0.0, *(count for _, count in found)))],
            explicit_bounds=[bound for bound, _ in found if bound != inf],
            min=None,  # type: ignore[arg-type]  # not known, and optional in OTLP
            max=None,  # type: ignore[arg-type]
        )
        for labels, found in buckets.items()
    ]


def _begun(family: Family) -> dict[_Labels, int]:
    name = f"{family.name}_created"
    return {_labels_of(each): int(each.value * _NANOSECONDS) for each in family.samples if each.name == name}


def _labels_of(sample: Sample) -> _Labels:
    return tuple((name, value) for name, value in sorted(sample.labels.items()) if name != "le")
