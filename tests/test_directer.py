"""DIRECTER against a plain implementation of its authors' algorithm, and what it leaves alone.

The plain one reads every token anew: eager attention of transformers, one row, a cache whose keys
are copied and multiplied.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import pytest
import torch
from served import served
from tiny import GPTJ, chat, model

import holdfast
from holdfast import Boost, Directer, Gate, Guidance, Sampling, methods
from holdfast.attention import install
from holdfast.engine.batch import ActiveRow
from holdfast.engine.processors import Processors
from holdfast.errors import ModelError, ParameterOutOfRange, UsageError
from holdfast.models.requests import Request
from holdfast.serve.service import Limits

GREEDY = Sampling(0.0, 1.0, 12)
DRAWN = Sampling(1.0, 0.95, 10)
ROUNDING = 1e-4  # of log-probabilities: float32, other shapes of the same products
TALKS = (
    chat("always talk about cheese", "the old town"),
    chat("talk about rain", "the garden is green", "music", "people talk about bread"),
    chat("be kind and mention the river", "where do people talk about music?"),
)
ARCHITECTURES = {
    "llama": {"num_hidden_layers": 8},
    "qwen3": {"num_hidden_layers": 5},  # halves to two layers, and to none
    "gemma3_text": {
        "num_hidden_layers": 6,
        "sliding_window": 8,
        "layer_types": ("sliding_attention", "full_attention") * 3,
    },
}


def made(kind: str):
    return model(kind, **ARCHITECTURES.get(kind, {}))


def widened(own):
    """The same model in float64, and another one of it that transformers runs eagerly."""
    ours, plain = (copy.deepcopy(own.hf_model).double() for _ in range(2))
    install(ours)
    plain.set_attn_implementation("eager")
    return replace(own, hf_model=ours), plain


@dataclass
class ByHand:
    """A reply as the authors' program makes it."""

    plain: torch.nn.Module  # with eager attention, layers in `model.layers`
    method: Directer
    ids: list[int]  # of the prompt, and of the reply so far
    span: tuple[bool, ...]  # True on the prompt's tokens to hold on to
    ranking: list[int] = field(default_factory=list)  # the layers, once they are ranked
    # of each token, how many steered passes were made, and whether one was taken
    trials: list[tuple[int, bool]] = field(default_factory=list)

    @torch.inference_mode()
    def logits(self) -> torch.Tensor:
        """What the next token is drawn from, [vocabulary]."""
        cache = self.plain(input_ids=torch.tensor([self.ids[:-1]]), use_cache=True).past_key_values
        raw = self.last(cache, [])
        if not self.ranking:
            self.ranking = self.ranked(cache)
        chances = raw.softmax(-1)
        count, steps = len(self.ranking), 0
        best = chances.topk(2).values
        if best[1] < self.method.threshold * best[0]:
            count = 0
        while count > 1:
            steps += 1
            steered = self.last(cache, self.ranking[:count])
            if chances[steered.argmax()] > self.method.threshold * chances.max():
                self.trials.append((steps, True))
                return steered
            count = len(self.ranking) // 2**steps
        self.trials.append((steps, False))
        return raw

    def last(self, cache, layers) -> torch.Tensor:
        """The logits of the last token, with the keys of the span multiplied in some layers."""
        scaled = copy.deepcopy(cache)
        for layer in layers:
            keys = scaled.layers[layer].keys
            missing = len(self.ids) - 1 - keys.shape[2]  # a window has the last ones only
            for place, inside in enumerate(self.span[: len(self.ids) - 1]):
                if inside and place >= missing:
                    keys[:, :, place - missing] *= self.method.scale
        return self.plain(
            input_ids=torch.tensor([self.ids[-1:]]), past_key_values=scaled, use_cache=True
        ).logits[0, -1]

    def ranked(self, cache) -> list[int]:
        """Most disturbed first."""
        attention = [layer.self_attn for layer in self.plain.model.layers]
        states: list[tuple[torch.Tensor, torch.Tensor]] = []
        handles = [
            module.register_forward_hook(
                lambda _, args, kwargs, output: states.append(
                    (kwargs["hidden_states"][0, -1], output[0][0, -1])
                ),
                with_kwargs=True,
            )
            for module in attention
        ]
        self.last(cache, [])
        raw, sums = states[:], [0.0] * len(attention)
        for steered in range(len(attention)):
            states.clear()
            self.last(cache, [steered])
            for layer, ((x, y), (seen_x, seen_y)) in enumerate(zip(raw, states, strict=True)):
                sums[layer] += max(0.0, 2 - cosine(x, seen_y) - cosine(y, seen_x))
        for handle in handles:
            handle.remove()
        return sorted(range(len(sums)), key=lambda layer: -sums[layer])


def cosine(first: torch.Tensor, second: torch.Tensor) -> float:
    return float(first @ second / (first.norm() * second.norm()))


def by_hand(own, plain, messages, method, reply=None) -> tuple[ByHand, list[torch.Tensor]]:
    """The plain implementation over a reply, its own or a given one, and what it drew from."""
    stream = own.session().render(Request(messages)).row.streams[0]
    hand, seen = ByHand(plain, method, list(stream.token_ids), stream.span), []
    while len(seen) < (GREEDY.max_new_tokens if reply is None else len(reply)):
        seen.append(hand.logits())
        token = int(seen[-1].argmax()) if reply is None else reply[len(seen) - 1]
        if reply is None and token in own.stop_ids:
            break
        hand.ids.append(token)
    return hand, seen


@pytest.fixture
def rankings(monkeypatch):
    """Those that are made, by prompt."""
    made, finish = {}, ActiveRow.finish

    def finished(row, *args):
        if "ranking" in row.memory:
            made[row.row.streams[0].token_ids] = row.memory["ranking"]
        return finish(row, *args)

    monkeypatch.setattr(ActiveRow, "finish", finished)
    return made


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_replies_are_those_of_the_published_algorithm_in_float64(kind, rankings):
    """Steered in all layers, in fewer, in none; the ranking; and each token's log-probability."""
    own, plain = widened(made(kind))
    told = set()
    for scale, threshold in ((100.0, 0.5), (100.0, 0.9), (4.0, 0.1)):
        method = Directer(scale, threshold)
        requests = [Request(messages, (method,), GREEDY) for messages in TALKS]
        replies = own.generate_batch([*requests, Request(TALKS[0], (), GREEDY)])
        for messages, reply in zip(TALKS, replies, strict=False):
            hand, seen = by_hand(own, plain, messages, method)
            assert tuple(hand.ids[len(reply.prompt_ids) :]) == reply.token_ids
            assert tuple(hand.ranking) == rankings[reply.prompt_ids]
            told.update(hand.trials)
            pairs = zip(reply.token_ids, seen, strict=False)
            wanted = sum(float(logits.log_softmax(-1)[token]) for token, logits in pairs)
            if reply.text:
                given = own.session().score([Request(messages, (method,))], [[reply.text]])[0]
                if given.tokens[0] == len(reply.token_ids):
                    assert given.log_probabilities[0] == pytest.approx(wanted, abs=1e-4)
    assert told >= {(1, True), (2, True), (0, False)}, "all layers, half of them, and no trial"
    turned_down = any(count and not taken for count, taken in told)
    assert turned_down or kind == "llama", "eight layers are halved often enough to be taken"


def test_no_scale_and_no_plausible_token_are_the_unsteered_model():
    own = made("llama")
    neutral = (Directer(1.0), Directer(100.0, 1.0), Directer(1.0, 0.0))
    for sampling in (GREEDY, DRAWN):
        plain, *others = own.generate_batch(
            [Request(TALKS[0], chosen, sampling, 3) for chosen in ((), *((m,) for m in neutral))]
        )
        assert [reply.token_ids for reply in others] == [plain.token_ids] * len(neutral)
    strong = own.generate(TALKS[0], [Directer(100.0, 0.02)], GREEDY)
    assert strong.token_ids != own.generate(TALKS[0], (), GREEDY).token_ids


@pytest.mark.parametrize("kind", (*ARCHITECTURES, "lfm2", "gpt_neox", "gptj"))
def test_a_row_of_a_mixed_batch_is_that_row_alone(kind):
    shapes = {"lfm2": {"layer_types": ("conv", "full_attention", "full_attention")}, "gptj": GPTJ}
    own = model(kind, **(ARCHITECTURES | shapes).get(kind, {}))
    strong, weak = Directer(100.0, 0.02), Directer(3.0, 0.1)
    chosen = [(), (strong,), (weak,), (Boost(3),), (strong, Boost(3)), (weak, Guidance(1.5))]
    requests = [Request(TALKS[n % 3], mine, DRAWN, n, trace=True) for n, mine in enumerate(chosen)]
    together = own.generate_batch(requests)
    few = replace(own, batch_size=3).generate_batch(requests)
    for number, request in enumerate(requests):
        alone = own.generate_batch([request])[0]
        assert together[number].token_ids == few[number].token_ids == alone.token_ids
        assert torch.allclose(together[number].trace.mass, alone.trace.mass, atol=ROUNDING)
    assert len({reply.token_ids for reply in together}) > len(TALKS)


@pytest.mark.parametrize("kind", (*ARCHITECTURES, "lfm2"))
def test_what_is_kept_of_a_reply_is_what_the_unsteered_model_computes(kind):
    shape = {"layer_types": ("conv", "full_attention", "full_attention")}
    own = model(kind, **(ARCHITECTURES | {"lfm2": shape})[kind])
    session = own.session()
    steered = Request(TALKS[1], (Directer(100.0, 0.02),), GREEDY, thread="t", keep=True)
    reply = session.generate_batch([steered])[0]
    kept = session._reader._threads["t"][0].prefix.keys_values
    plain = own.session().render(replace(steered, methods=())).row
    scheduler = own.scheduler()
    given = scheduler.submit(replace(plain, given=reply.token_ids, keep=True))
    while not given.done:
        scheduler.step()
    (wanted,) = given.result().computed
    assert reply.token_ids != own.generate(TALKS[1], (), GREEDY).token_ids, "it was steered"
    for ours, theirs in zip(kept.layers, wanted.layers, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            count = min(one.shape[1], other.shape[1])
            assert torch.allclose(one[:, :count], other[:, :count], atol=1e-5)
    for ours, theirs in zip(kept.states, wanted.states, strict=True):
        assert all(torch.allclose(ours[name], theirs[name], atol=1e-5) for name in ours)
    longer = (*TALKS[1], {"role": "assistant", "content": reply.text}, TALKS[0][1])
    asked = Request(longer, (), GREEDY, thread="t")
    went_on, anew = session.generate_batch([asked])[0], own.generate(longer, (), GREEDY)
    assert went_on.forwarded < anew.forwarded, "the history serves under other methods"


def test_the_mass_is_that_of_what_a_token_was_drawn_from():
    own, method = made("llama"), Directer(100.0, 0.0)  # every steered pass is taken
    traced = own.generate_batch([Request(TALKS[0], (method,), GREEDY, trace=True)])[0]
    stream = own.session().render(Request(TALKS[0])).row.streams[0]
    plain = copy.deepcopy(own.hf_model)
    plain.set_attn_implementation("eager")
    hand = ByHand(plain, method, list(stream.token_ids), stream.span)
    span = torch.tensor(stream.span)
    weights = []
    for layer in plain.model.layers:
        layer.self_attn.register_forward_hook(lambda _, __, output: weights.append(output[1]))
    with torch.inference_mode():
        cache = plain(input_ids=torch.tensor([hand.ids[:-1]]), use_cache=True).past_key_values
        weights.clear()
        hand.last(cache, range(len(plain.model.layers)))
    mass = torch.stack([each[0, :, -1, : len(span)][:, span].sum(-1) for each in weights])
    assert torch.allclose(traced.trace.mass[..., 0], mass, atol=ROUNDING)


def test_scores_of_replies_are_those_of_their_tokens():
    own, method = made("llama"), Directer(100.0, 0.02)
    plain = copy.deepcopy(own.hf_model)
    plain.set_attn_implementation("eager")
    options = ["bread", "the old town where people talk", "r"]
    session = own.session()
    asked = Request(TALKS[0], (method,), thread="t", keep=True)
    boosted = Request(TALKS[1], (method, Boost(2)))
    first, both = session.score([asked, boosted], [options, options[:1]])
    assert both.log_probabilities != own.score(TALKS[1], options[:1], (Boost(2),)).log_probabilities
    for option, told, greedy in zip(options, first.log_probabilities, first.greedy, strict=True):
        ids = own.tokenizer(option, add_special_tokens=False)["input_ids"]
        _, seen = by_hand(own, plain, TALKS[0], method, ids)
        rows = torch.stack(seen).log_softmax(-1)
        wanted = float(rows.gather(-1, torch.tensor(ids)[:, None]).sum())
        assert told == pytest.approx(wanted, abs=1e-3)
        assert greedy == (rows.argmax(-1).tolist() == list(ids))
    again = session.score([Request(TALKS[0], (method,), thread="t")], [options])[0]
    assert again.forwarded < first.forwarded, "the chat was kept"
    assert again.log_probabilities == pytest.approx(first.log_probabilities, abs=1e-3)


def test_a_thread_and_a_server_go_on_as_a_model_does(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own, spelled = made("llama"), "directer:scale=100,threshold=0.02"
    requests = [Request(messages, spelled, DRAWN, n) for n, messages in enumerate(TALKS)]
    here = own.generate_batch(requests)
    with served(own, Limits(200, 60.0)) as server:
        remote = holdfast.connect(f"{server.url}/v1", timeout=60)
        assert methods.Ability.SCORES in remote.offers
        there = remote.generate_batch(requests)
        twice = remote.generate_batch(requests)  # behind what is shared of the first
        assert [r.text for r in there] == [r.text for r in here] == [r.text for r in twice]
        bare = Request(chat("", "the old town"), spelled, DRAWN, 1)
        for model in (own, remote):
            with pytest.raises(UsageError, match=r"directer.* holds on to a system prompt"):
                model.generate_batch([bare])


def test_where_scores_cannot_be_scaled_it_is_refused(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    method, own = Directer(8.0), model()
    endpoint = holdfast.connect("http://localhost:1/v1", "m")
    for refusing, name in (
        (endpoint, "http://localhost:1/v1"),
        (model("mamba"), "MambaForCausalLM"),
        (replace(own, reuses_cache=False), "LlamaForCausalLM"),
    ):
        with pytest.raises(ModelError, match=r"directer:scale=8 needs scores on the span") as error:
            refusing.generate(TALKS[0], [method], GREEDY)
        assert name in str(error.value)
    span = torch.ones(1, 4, dtype=torch.bool)
    with (
        pytest.raises(UsageError, match=r"scale=8\.0.*does not act inside a forward pass"),
        holdfast.steering(own.hf_model, span, [method]),
    ):
        pass
    with pytest.raises(UsageError, match="gate and directer each draw a token again"):
        own.check([Gate((Boost(2),), 0.1), method])
    for scale, threshold in ((0.5, 0.5), (8.0, 1.5), (8.0, -0.1)):
        with pytest.raises(ParameterOutOfRange):
            Directer(scale, threshold)


def test_running_out_of_memory_in_a_trial_changes_no_reply(monkeypatch):
    own, method = made("llama"), Directer(100.0, 0.02)
    requests = [Request(messages, (method,), DRAWN, n) for n, messages in enumerate(TALKS)]
    alone = [own.generate_batch([request])[0].token_ids for request in requests]
    forward, sizes = Processors._try, []

    def scarce(processors, *trial):
        sizes.append(len(processors.slots.lengths))
        if len(sizes) > 15 and sizes[-1] > 1:
            raise MemoryError
        return forward(processors, *trial)

    monkeypatch.setattr(Processors, "_try", scarce)
    together = own.generate_batch(requests)
    assert [reply.token_ids for reply in together] == alone
    assert sizes[0] == 3 and sizes[-1] == 1, "all together at first, and alone in the end"
