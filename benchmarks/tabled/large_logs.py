"""How long `holdfast logs` takes on large logs, and how much memory."""

from __future__ import annotations

from tabled.reading import markdown, read

_LOGS = {
    "session": "a session of Claude Code, one process",
    "mixed": "sessions, chats and spans, {workers} processes",
}
_STEPS = {"read and scored": "read and scored", "command": "`holdfast logs`, with its page"}


def large_logs_table() -> str:
    """The seconds and the memory of each step, and the machine."""
    record = read("large_logs")
    rows = [["logs", "size", "dialogs", "step", "seconds", "processor seconds", "memory"]]
    for row in record["rows"]:
        logs = _LOGS[row["logs"]].format(workers=record["workers"])
        sizes = [f"{row['megabytes']:,.0f} MB", f"{row['dialogs']:,}"]
        times = [f"{row['seconds']:.1f}", f"{row['processor_seconds']:.1f}"]
        step = _STEPS[row["step"]]
        rows.append([logs, *sizes, step, *times, f"{row['peak_megabytes']:,} MB"])
    machine = record["measured_on"]["machine"]
    how = f"`python benchmarks/large_logs.py`, {machine}; memory is that of all processes together."
    return "\n".join([how, "", *markdown(rows)])
