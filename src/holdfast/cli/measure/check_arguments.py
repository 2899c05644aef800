"""The options of `holdfast check`, and what follows from them alone."""

from pathlib import Path
from typing import Annotated

from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, file_to_write
from holdfast.errors import UsageError
from holdfast.records.check_records import Terms

# the values of options that are not given with --smoke
_SMOKE_DEFAULTS = {"rounds": 3, "budget": 8, "max_new_tokens": 100}


class CheckArguments(
    options.MethodOptions, options.BenchmarkOptions, options.RunOptions, options.ReportOptions
):
    suite: Annotated[str, Arg("SUITE", positional=True)]
    """FILE.yaml, or any suite that `holdfast drift` accepts"""
    min_stability: Annotated[float | None, Arg("SHARE")] = None
    """the mean score that every rule must reach in every round (default: 0.9; with --against:
    none)"""
    error: Annotated[float, Arg("SHARE")] = 0.05
    """the highest acceptable probability that any verdict is wrong"""
    budget: int = 200
    """the most conversations per prompt"""
    all_rules: bool = False
    """decide every rule, even those of a prompt that has already failed"""
    smoke: bool = False
    """look only for clear failures, for about a minute: 3 rounds, at most 8 conversations per
    prompt and 100 tokens per reply, unless you give other numbers"""
    junit: Annotated[Path | None, Arg("FILE", type=file_to_write)] = None
    """also write the verdicts as JUnit XML"""
    against: Annotated[Path | None, Arg("RUN")] = None
    """fail if a rule is kept less often than in the run in this folder"""

    def as_smoke_test(self) -> "CheckArguments":
        """The options, with the defaults of a smoke test in place of the usual ones."""
        if self.all_rules:
            raise UsageError("--smoke looks for the first clear failure; leave out --all-rules.")
        defaults = {name: value for name, value in _SMOKE_DEFAULTS.items() if self.is_default(name)}
        return self.model_copy(update=defaults)

    def terms(self) -> Terms:
        """The terms of the check. With --against alone, no mean score is required."""
        min_stability = self.min_stability
        if min_stability is None and self.against is None:
            min_stability = Terms().min_stability
        return Terms(min_stability, self.error, self.budget, self.all_rules, self.smoke)
