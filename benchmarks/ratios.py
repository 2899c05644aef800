"""Times of alternating variants, as ratios to the plain one.

ratios("prefill 1024", {"plain": [1.0, 1.1], "boost": [1.2, 1.3]})
-> {"work": "prefill 1024", "plain_seconds": 1.05,
    "boost": {"median": 1.191, "quartiles": [...], "repetitions": 2}}
"""

from __future__ import annotations

import statistics


def ratios(work: str, seconds: dict[str, list[float]]) -> dict:
    """Computes and prints medians and quartiles of each variant's ratio to "plain", paired by
    repetition.

    Args:
        work: describes what was timed.
        seconds: of each repetition, by variant; slow variants may have fewer repetitions.
    """
    plain = seconds["plain"]
    by_variant = {}
    for name, timings in seconds.items():
        if name != "plain":
            pairs = zip(timings, plain, strict=False)
            by_variant[name] = spread([time / plain_time for time, plain_time in pairs])
    row = {"work": work, "plain_seconds": statistics.median(plain), **by_variant}
    medians = {name: result["median"] for name, result in by_variant.items()}
    print(work, f"{row['plain_seconds'] * 1e3:.1f} ms", medians, flush=True)
    return row


def spread(values: list[float]) -> dict:
    """The median and the quartiles of values, which are the same for a single one."""
    low = median = high = values[0]
    if len(values) > 1:
        low, median, high = statistics.quantiles(values, n=4)
    return {
        "median": round(median, 4),
        "quartiles": [round(low, 4), round(high, 4)],
        "repetitions": len(values),
    }
