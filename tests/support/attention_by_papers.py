"""One layer's attention by the papers' formulas, in float64, and the methods it is compared for."""

import oracles
import torch

from holdfast import Boost, Pasta, SplitSoftmax, Spotlight

FLOAT32 = 1e-5  # tolerance of outputs and masses
# tolerance of outputs up to about 3: two groups, each rounded by the kernel, are merged
BFLOAT16 = 2e-2
SPLIT, KEEP, SCALE = SplitSoftmax(0.3), Pasta(0.05), Pasta(0.05, None, "scale")
BOOST, SPOT = Boost(5), Spotlight(0.4)
SOME = Pasta(0.01, {(0, 1), (0, 2), (3, 0)})
# the methods of each of three rows: the same in all, then different ones
EVERYWHERE = [[(method,)] * 3 for method in (SPLIT, KEEP, SCALE, BOOST, SPOT, SOME)]
MIXED = [
    [(SPLIT, KEEP)] * 3,
    [(), (SPLIT,), (SOME, BOOST)],
    [(SPLIT,), (SCALE,), ()],
    [(KEEP, SPOT), (BOOST,), (KEEP,)],
]


class Layer(torch.nn.Module):
    """An attention layer with 4 heads, as far as the attention function reads it."""

    layer_idx, is_causal = 0, True

    def __init__(self, groups=2):
        super().__init__()
        self.num_key_value_groups = 4 // groups


def attend_by_papers(q, k, v, visible, span, methods, prompt, scaling, sinks=None, softcap=None):
    """Outputs [B, Q, H, D] and the mass on the span [B, H, Q], in float64.

    Args:
        visible: the keys that each query sees, [B, H or 1, Q, K].
        methods: those of each row.
        prompt: the number of prompt tokens of each row; those after them are generated.
    """
    q, k, v, visible, span = (tensor.cpu() for tensor in (q, k, v, visible, span))
    times = q.shape[1] // k.shape[1]
    scores = (q.double() @ k.double().repeat_interleave(times, 1).mT) * scaling
    scores = scores if softcap is None else (scores / softcap).tanh() * softcap
    scores = scores.masked_fill(~visible, -torch.inf)
    if sinks is not None:
        sinks = sinks.cpu().double().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, sinks], -1)
    weights = scores.softmax(-1).nan_to_num(0.0)
    for row, head, query in torch.cartesian_prod(*map(torch.arange, weights.shape[:3])).tolist():
        seen_weights = weights[row, head, query]
        if seen_weights.any():
            inside, sink = span[row].tolist(), [False] * (sinks is not None)
            generated = [index >= prompt[row] and not h for index, h in enumerate(inside)]
            new_weights = _steered(
                seen_weights.tolist(), inside + sink, generated + sink, methods[row], head
            )
            weights[row, head, query] = torch.tensor(new_weights, dtype=torch.double)
    weights = weights[..., : k.shape[2]]
    outputs = weights @ v.double().repeat_interleave(times, 1)
    return outputs.transpose(1, 2), (weights * span[:, None, None]).sum(-1)


def _steered(weights, span, generated, methods, head):
    """One row of weights after each method's own formula."""
    for method in methods:
        pi = sum(w for w, inside in zip(weights, span, strict=True) if inside)
        rest_mass = sum(w for w, inside in zip(weights, span, strict=True) if not inside)
        is_other_head = method.heads is not None and (0, head) not in method.heads
        if is_other_head or (not isinstance(method, Pasta) and not (pi > 0 and rest_mass > 0)):
            continue
        weights = oracles.ORACLES[method.name](method, weights, span, generated)
    return weights


def max_difference(out, expected):
    return (out.double().cpu() - expected).abs().max()
