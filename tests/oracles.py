"""Slow, literal formulas from the papers, in float64 or wider; they must not import the package."""

from __future__ import annotations

import decimal
import math
import random

# By the name of a method, its oracle. Each takes the method, whose parameters it reads, and
#   of an attention method: a row of weights, which of the keys are the span's, which were generated
#   of a logits processor: the logits with the prompt and without it, or with its words masked
#   of a message method: the texts of the user, that of the system prompt, and the seed
# and returns the weights, the probabilities, or the texts that the model is shown.
ORACLES = {}


def oracle_of(*names):
    """Registers a function as the oracle of methods."""

    def register(function):
        ORACLES.update(dict.fromkeys(names, function))
        return function

    return register


def softmax(scores: list[float]) -> list[float]:
    """Plain softmax of one row of scores."""
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [power / math.fsum(powers) for power in powers]


@oracle_of("split-softmax")
def split_softmax(method, weights, span, generated) -> list[float]:
    """Li et al. (2024), equation 6: one row of attention weights."""
    pi = math.fsum(weight for weight, inside in zip(weights, span, strict=True) if inside)
    return [
        pi**method.exponent / pi * weight
        if inside
        else (1 - pi**method.exponent) / (1 - pi) * weight
        for weight, inside in zip(weights, span, strict=True)
    ]


def split_softmax_log_odds(log_odds: float, exponent: float) -> float:
    """The log-odds of pi**exponent, with 120 digits as pi may be as close to 0 or 1 as e**-80."""
    with decimal.localcontext(prec=120):
        pi = 1 / (1 + (-decimal.Decimal(log_odds)).exp())
        raised = (decimal.Decimal(exponent) * pi.ln()).exp()
        return float((raised / (1 - raised)).ln())


@oracle_of("guidance", "prompt-strength")
def guidance(method, with_prompt, without) -> list[float]:
    """Li et al. (2024), equation 5, and Dong et al. (2026); 0 for implausible tokens."""
    p_with, p_without = softmax(with_prompt), softmax(without)
    return softmax(
        [
            (
                math.log(q) + method.scale * (math.log(p) - math.log(q))
                if p >= method.plausibility * max(p_with)
                else -math.inf
            )
            for p, q in zip(p_with, p_without, strict=True)
        ]
    )


@oracle_of("adacad")
def adacad(method, with_prompt, without) -> list[float]:
    """Wang et al. (2024): softmax of (1 + a) f - a g, f and g the logits with and without the
    prompt, a the strength times the Jensen-Shannon divergence (base 2) of their distributions.
    """
    p, q = softmax(with_prompt), softmax(without)
    m = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
    bits = [
        math.fsum(a * math.log2(a / b) for a, b in zip(part, m, strict=True) if a)
        for part in (p, q)
    ]
    alpha = method.strength * math.fsum(bits) / 2
    scaled = [(1 + alpha) * f - alpha * g for f, g in zip(with_prompt, without, strict=True)]
    return softmax(scaled)


@oracle_of("anchoring")
def anchoring(method, seeing, masked) -> list[float]:
    """Tian and Zhang (2025): probabilities from the logits with the span, and with it masked."""
    w = method.strength
    return softmax([w * f + (1 - w) * g for f, g in zip(seeing, masked, strict=True)])


@oracle_of("pasta")
def pasta(method, weights, span, generated) -> list[float]:
    """Zhang et al. (2024), equation 2: weights outside the span are scaled by alpha, generated
    tokens only on request; then all are divided by their sum.
    """
    scaled = [
        weight if inside or (earlier and method.generated == "keep") else method.alpha * weight
        for weight, inside, earlier in zip(weights, span, generated, strict=True)
    ]
    return [weight / math.fsum(scaled) for weight in scaled]


@oracle_of("boost")
def boost(method, weights, span, generated) -> list[float]:
    """InstABoost: weights on the span are multiplied by M, then all divided by their sum."""
    scaled = [
        method.factor * weight if inside else weight
        for weight, inside in zip(weights, span, strict=True)
    ]
    return [weight / math.fsum(scaled) for weight in scaled]


@oracle_of("attenuate")
def attenuate(method, weights, span, generated) -> list[float]:
    """Weights on earlier replies, which are all keys neither in the span nor generated, are
    multiplied by the factor, then all divided by their sum.
    """
    scaled = [
        weight if inside or earlier else method.factor * weight
        for weight, inside, earlier in zip(weights, span, generated, strict=True)
    ]
    return [weight / math.fsum(scaled) for weight in scaled]


def guide(scores: list[float], span: list[bool], delta: float) -> list[float]:
    """GUIDE: delta added to the scores of the span before the softmax."""
    return softmax(
        [score + delta if inside else score for score, inside in zip(scores, span, strict=True)]
    )


@oracle_of("spotlight")
def spotlight(method, weights, span, generated) -> list[float]:
    """Spotlight with its target reached: a span with less than the target mass is scaled up to
    it, and the rest down to what remains.
    """
    pi = math.fsum(weight for weight, inside in zip(weights, span, strict=True) if inside)
    target = method.target
    if pi >= target:
        return list(weights)
    return [
        weight * (target / pi if inside else (1 - target) / (1 - pi))
        for weight, inside in zip(weights, span, strict=True)
    ]


@oracle_of("reminder")
def reminder(method, texts, prompt, seed) -> list[str]:
    """A user's messages with reminders: one is due at number `every`, twice that and so on, and
    stands `depth` of the user's messages before the one that it is due at.
    """
    edited, every, depth = list(texts), method.every, method.depth
    text = prompt if method.text == "prompt" else method.text
    due = every
    while every and due - depth <= len(texts):
        if due - depth >= 1:
            edited[due - depth - 1] = f"[Reminder: {text}]\n\n{texts[due - depth - 1]}"
        due += every
    return edited


@oracle_of("repetition")
def repetition(method, texts, prompt, seed) -> list[str]:
    """Li et al. (2024), section 6.1: the prompt before some of the user's messages."""
    draws = [random.Random(f"repetition {seed} {number}").random() for number in range(len(texts))]
    return [
        f"{prompt}\n\n{text}" if draw < method.probability else text
        for text, draw in zip(texts, draws, strict=True)
    ]


def binomial_tail(count: int, n: int, share: float) -> float:
    """The probability of at least `count` successes in n trials."""
    return math.fsum(
        math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(count, n + 1)
    )


def hypergeometric_tail(count: int, drawn: int, marked: int, total: int) -> float:
    """Fisher's exact test, one-sided: the probability that at least `count` of the marked ones are
    among those drawn.
    """
    ways = range(count, min(drawn, marked) + 1)
    chosen = sum(math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in ways)
    return chosen / math.comb(total, drawn)


def clopper_pearson(successes: int, n: int) -> tuple[float, float]:
    """The exact 95% interval of a proportion: each end leaves a tail of 2.5% (by bisection)."""

    def at_least(count: int, share: float) -> float:
        return binomial_tail(count, n, share)

    def bisect(tail) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle) < 0.025 else (low, middle)
        return low

    lower = bisect(lambda share: at_least(successes, share)) if successes else 0.0
    upper = 1 - bisect(lambda share: at_least(n - successes, share)) if successes < n else 1.0
    return lower, upper


def steering_table(log_odds: float, bias: float, power: float, floor: float) -> float:
    """max(logit(sigmoid(x + bias)**power), floor) with 120 digits; a power of 0 gives infinity."""
    with decimal.localcontext(prec=120):
        pi = 1 / (1 + (-decimal.Decimal(log_odds) - decimal.Decimal(bias)).exp())
        raised = (decimal.Decimal(power) * pi.ln()).exp()
        log_odds_after = math.inf if raised == 1 else float((raised / (1 - raised)).ln())
    return max(log_odds_after, floor)


def seka(
    key: list[float],
    positive: list[list[float]],
    negative: list[list[float]],
    gain: float,
    rest_gain: float,
) -> list[float]:
    """Li et al. (2026), SEKA: k + (g+ P+ k + g- P- k) / 2 for one key.

    `positive` and `negative` are lists of orthonormal directions, of P+ and of P-.
    """
    along = projected(key, positive)
    beside = projected(key, negative)
    return [k + (gain * p + rest_gain * n) / 2 for k, p, n in zip(key, along, beside, strict=True)]


def projected(vector: list[float], directions: list[list[float]]) -> list[float]:
    """The part of a vector along orthonormal directions: sum of <u, x> u."""
    part = [0.0] * len(vector)
    for direction in directions:
        length = dot(direction, vector)
        part = [p + length * u for p, u in zip(part, direction, strict=True)]
    return part


def dot(first: list[float], second: list[float]) -> float:
    """The inner product."""
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


def prism(
    key: list[float], directions: list[list[float]], distance: float, offset: float, gain: float
) -> list[float]:
    """Ge et al. (2026), PRISM-Delta: k + g softplus(d - delta) P k for one key or value."""
    weight = math.log1p(math.exp(distance - offset))
    part = projected(key, directions)
    return [k + gain * weight * p for k, p in zip(key, part, strict=True)]


def rank(values: list[float], coverage: float) -> int:
    """The smallest number of leading singular values with `coverage` or more of the total."""
    for count in range(1, len(values) + 1):
        if math.fsum(values[:count]) >= coverage * math.fsum(values):
            return count
    return len(values)


def capping(
    hidden: list[float], direction: list[float], cap: float, strength: float
) -> list[float]:
    """Lu et al. (2026): h - s v max(<h, v> - tau, 0), s the strength."""
    excess = max(dot(hidden, direction) - cap, 0.0)
    return [h - strength * excess * v for h, v in zip(hidden, direction, strict=True)]


def penalised(
    logits: list[float], tokens: list[int], frequency: float, presence: float
) -> list[float]:
    """OpenAI's API: mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence, where c[j]
    is how often token j was drawn before.
    """
    return [
        logit - tokens.count(token) * frequency - float(tokens.count(token) > 0) * presence
        for token, logit in enumerate(logits)
    ]
