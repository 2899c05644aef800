"""Suites of verifiable instructions, read from the files of published benchmarks. The files are the
user's; nothing of them is part of this package, and nothing in them is ever executed.
"""

from holdfast.drift.verifiable.ifbench import load_ifbench
from holdfast.drift.verifiable.multi_if import load_multi_if
from holdfast.drift.verifiable.sys_ifeval import load_sys_ifeval

__all__ = ["load_ifbench", "load_multi_if", "load_sys_ifeval"]
