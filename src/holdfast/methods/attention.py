"""Attention methods: split-softmax, PASTA, InstABoost with GUIDE, Spotlight, and attenuate."""

import math
from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.kinds import Ability
from holdfast.methods.parameters import heads_parameter, method, number, parameter, word
from holdfast.methods.table import TableEntry, TableMethod


@method
class SplitSoftmax(TableMethod):
    """Raises the attention mass on the system prompt, to the power of exponent (from 0 to 1).

    Li et al. (2024), equation 6, with k = `exponent`; the ratios of the weights inside the span,
    and inside the rest, stay as they are. In log-odds x of the mass pi, with u = k *
    log(pi): x' = u - log(1 - exp(u)).
    """

    name: ClassVar[str] = "split-softmax"
    source: ClassVar[str] = "Li et al. 2024, eq. 6"

    exponent: float = parameter(
        "the power k; 1 changes nothing, 0 puts all mass on the span", number(0, 1), "0.5"
    )
    heads: HeadSet | None = heads_parameter()

    @property
    def table_entry(self) -> TableEntry:
        """An exponent of k."""
        return TableEntry(exponent=self.exponent)


@method
class Pasta(TableMethod):
    """Scales down the attention to the rest of the prompt by alpha on chosen heads, and
    renormalises.

    Zhang et al. (2024), equation 2: a weight on the span stays, one on the rest of the prompt is
    multiplied by `alpha`, and all are divided by their sum. Scaling the rest by alpha adds
    -log(alpha) to the log-odds of everything else: x' = x - log(alpha). The paper scales tokens of
    the prompt only, so generated tokens keep their weight as the span does; `generated="scale"`
    scales them too. The prompt is everything before the reply that is being generated: in a dialog,
    earlier replies belong to it and are scaled, whoever wrote them.
    """

    name: ClassVar[str] = "pasta"
    source: ClassVar[str] = "Zhang et al. 2024, eq. 2"

    alpha: float = parameter(
        "the factor on the rest of the prompt; 1 changes nothing, the paper takes 0.01",
        number(0, 1, above_low=True),
        "0.01",
    )
    heads: HeadSet | None = heads_parameter()
    generated: str = parameter(
        "whether the reply's own tokens keep their weight", word("keep", "scale"), default="keep"
    )

    @property
    def span_includes_generated(self) -> bool:
        """True if generated tokens keep their weight, as the span does."""
        return self.generated == "keep"

    @property
    def table_entry(self) -> TableEntry:
        """A bias of -log(alpha)."""
        return TableEntry(bias=-math.log(self.alpha))


@method
class Boost(TableMethod):
    """Multiplies the attention weights on the span by a factor and renormalises.

    InstABoost (arXiv 2506.13734) with M = `factor`; GUIDE (arXiv 2409.19001) adds delta = log(M) to
    the scores, which is the same. In log-odds: x' = x + log(M).
    """

    name: ClassVar[str] = "boost"
    source: ClassVar[str] = (
        "InstABoost, arXiv 2506.13734; GUIDE, arXiv 2409.19001, with delta = log(factor)"
    )

    factor: float = parameter("the factor M; 1 changes nothing", number(1), "4")
    heads: HeadSet | None = heads_parameter()

    @property
    def table_entry(self) -> TableEntry:
        """A bias of log(M)."""
        return TableEntry(bias=math.log(self.factor))


@method
class Spotlight(TableMethod):
    """Raises the attention mass on the span to a target where it is lower.

    Spotlight (arXiv 2505.12025) adds log(psi / pi) to the scores of the span when its mass pi is
    below psi = `target`, which leaves less than psi after normalising. Here the mass becomes
    exactly psi: x' = max(x, logit(psi)).
    """

    name: ClassVar[str] = "spotlight"
    source: ClassVar[str] = "Spotlight, arXiv 2505.12025, made exact"

    target: float = parameter(
        "the mass psi; 0 changes nothing", number(0, 1, below_high=True, share=True), "0.3"
    )
    heads: HeadSet | None = heads_parameter()

    @property
    def table_entry(self) -> TableEntry:
        """A floor of logit(psi)."""
        if self.target == 0:
            return TableEntry()
        return TableEntry(floor=math.log(self.target) - math.log1p(-self.target))


@method
class Attenuate(TableMethod):
    """Multiplies the attention weights on the model's own earlier replies by a factor, and
    renormalises.

    Our own method. Models follow their earlier replies more than their prompt (`holdfast
    precedent`), so a rule that a reply has broken stays broken. Here the span is everything but
    those replies: the system prompt, the other side's messages, and the reply being generated. In
    log-odds of its mass: x' = x - log(`factor`). The trace of the attention mass on the prompt is
    not available under this method.
    """

    name: ClassVar[str] = "attenuate"
    source: ClassVar[str] = "ours"
    requires: ClassVar[frozenset[Ability]] = frozenset({Ability.LOG_ODDS, Ability.REPLY_SPANS})

    factor: float = parameter(
        "the factor on earlier replies; 1 changes nothing", number(0, 1, above_low=True), "0.1"
    )
    heads: HeadSet | None = heads_parameter()

    @property
    def span_includes_generated(self) -> bool:
        """True, as the reply that is being generated keeps its weight."""
        return True

    @property
    def table_entry(self) -> TableEntry:
        """A bias of -log(factor)."""
        return TableEntry(bias=-math.log(self.factor))
