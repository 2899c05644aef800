"""The proxy's Prometheus metrics; those about rules and reminders come from the tally."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from holdfast.proxy.suite_rules import SuiteRule
from holdfast.proxy.tally import LAST_TURN, RuleCell, Tally, TallyCounts

# the buckets of histograms
_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600,
)  # fmt: skip


class ProxyMetrics:
    """The counters and histograms of a proxy.

    Args:
        tally: the counts of requests and replies, read whenever metrics are asked for.
        rules: the rules of the proxy's suite.
    """

    def __init__(self, tally: Tally, rules: Sequence[SuiteRule]):
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "holdfast_proxy_requests",
            "Answered requests, by API and status; 0: no answer was sent; 499: the client left.",
            ("api", "status"),
            registry=registry,
        )
        self.upstream_errors = Counter(
            "holdfast_proxy_upstream_errors",
            "Failures of the upstream, by kind.",
            ("kind",),
            registry=registry,
        )
        self.edit_seconds = Histogram(
            "holdfast_proxy_edit_seconds",
            "Seconds that it takes to edit a chat, once its body has arrived.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.first_byte_seconds = Histogram(
            "holdfast_proxy_first_byte_seconds",
            "Seconds from sending a request up to the first bytes of its answer.",
            buckets=_SECONDS,
            registry=registry,
        )
        registry.register(_TallyCollector(tally))
        registry.register(_SuiteRulesCollector(rules))

    def add_open_requests(self, count: Callable[[], float]) -> None:
        """Adds a gauge of open requests, whose number `count` returns."""
        gauge = Gauge(
            "holdfast_proxy_open", "Requests that have not ended.", registry=self._registry
        )
        gauge.set_function(count)

    def note_answer(self, api: str, status: int) -> None:
        """Counts a request that has ended."""
        self.requests.labels(api, str(status)).inc()

    def exposition(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class _SuiteRulesCollector(Collector):
    """The rules of a suite as a metric: whether replies are scored by each, and if not, why."""

    def __init__(self, rules: Sequence[SuiteRule]):
        self._rules = rules

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "holdfast_proxy_suite_rules",
            "1 for each rule; not_scored: why no reply is scored by it, empty if replies are.",
            labels=["case", "rule", "not_scored"],
        )
        for rule in self._rules:
            reason = rule.not_scored.value if rule.not_scored else ""
            family.add_metric([rule.case, rule.rule, reason], 1)
        yield family


class _TallyCollector(Collector):
    """The counts of a tally as metrics."""

    def __init__(self, tally: Tally):
        self._tally = tally

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yields the counts so far."""
        counts = self._tally.counts()
        yield _by_label(
            "chat_requests",
            "Chat requests, one for each turn or tool call, by outcome.",
            "outcome",
            {outcome.value: count for outcome, count in counts.requests.items()},
        )
        yield _total("reminders", "User messages with added text.", counts.reminders)
        yield _total(
            "added_tokens", "Tokens added to requests, estimated from bytes.", counts.added_tokens
        )
        yield _total(
            "left_out_messages", "Messages that were not sent, in all requests.", counts.left_out
        )
        yield _total(
            "retries",
            "Requests that were sent again because the reply broke a rule.",
            counts.retries,
        )
        yield _total(
            "failed_retries",
            "Retries without a reply that can be checked; an earlier reply was returned.",
            counts.failed_retries,
        )
        yield _total(
            "unchecked",
            "Replies passed on unchecked: one of several, made in the background, or too slow.",
            counts.unchecked,
        )
        yield _by_label(
            "unscored",
            "Replies without scores, by reason.",
            "reason",
            {reason.value: count for reason, count in counts.unscored.items()},
        )
        yield _rule_counts(counts)


def _total(name: str, text: str, value: float) -> CounterMetricFamily:
    """Returns a counter without labels."""
    return CounterMetricFamily(f"holdfast_proxy_{name}", text, value=value)


def _by_label(name: str, text: str, label: str, values: Mapping[str, int]) -> CounterMetricFamily:
    """Returns a counter with one label, and its value for each value of the label."""
    family = CounterMetricFamily(f"holdfast_proxy_{name}", text, labels=[label])
    for label_value, count in values.items():
        family.add_metric([label_value], count)
    return family


def _rule_counts(counts: TallyCounts) -> CounterMetricFamily:
    """Returns the counter of scored replies, by rule, turn and outcome."""
    family = CounterMetricFamily(
        "holdfast_proxy_rules",
        "Replies scored by a rule, by turn of the dialog.",
        labels=["case", "rule", "turn", "outcome"],
    )
    for row in counts.rules:
        family.add_metric([*_labels(row.cell), "kept"], row.kept)
        family.add_metric([*_labels(row.cell), "broken"], row.scored - row.kept)
    for cell, count in counts.failed.items():
        family.add_metric([*_labels(cell), "measure_failed"], count)
    return family


def _labels(cell: RuleCell) -> list[str]:
    """Returns the labels of a rule at a turn."""
    turn = str(cell.turn) if cell.turn <= LAST_TURN else f"{cell.turn}+"
    return [cell.case, cell.rule, turn]
