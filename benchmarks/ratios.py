"""Times of alternating variants, as ratios to the plain one."""

from __future__ import annotations

import statistics


def ratios(work: str, seconds: dict[str, list[float]]) -> dict:
    """Computes and prints medians and quartiles of each variant's ratio to "plain", paired by
    repetition.
    """
    row = {"work": work, "plain_seconds": statistics.median(seconds["plain"])}
    for name, timings in seconds.items():
        if name != "plain":
            paired = zip(timings, seconds["plain"], strict=False)
            relative = [time / plain for time, plain in paired]
            spread = statistics.quantiles(relative, n=4) if len(relative) > 1 else relative * 3
            low, middle, high = spread
            row[name] = {
                "median": round(middle, 4),
                "quartiles": [round(low, 4), round(high, 4)],
                "repetitions": len(relative),
            }
    print(
        work,
        f"{row['plain_seconds'] * 1e3:.1f} ms",
        {name: part["median"] for name, part in row.items() if isinstance(part, dict)},
        flush=True,
    )
    return row
