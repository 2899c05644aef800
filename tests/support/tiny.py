"""Tiny random models and their tokenizer, built in memory: nothing is downloaded."""

import asyncio
from dataclasses import dataclass
from functools import cache

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from holdfast import Request, Sampling
from holdfast.attention import install
from holdfast.generation.scheduler import Scheduler, Serving
from holdfast.generation.token_requests import RequestState
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.local import LocalModel
from holdfast.models.model_properties import reuses_cache, stop_ids
from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import Reply

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SPECIAL = ("<pad>", "<s>", "<sys>", "<user>", "<assistant>", "</s>")
TEMPLATE = (
    "<s>{% for m in messages %}{{ {'system': '<sys>', 'user': '<user>', 'assistant':"
    " '<assistant>'}[m['role']] + m['content'] + '</s>' }}{% endfor %}{% if add_generation_prompt"
    " %}<assistant>{% endif %}"
)
# as Hermes and Qwen do: the tools after the system prompt, calls and results in tags
TOOLED = (
    "{% set system = messages[0]['content'] if messages[0]['role'] == 'system' else 'Help.' %}"
    "{{ '<sys>' + system }}{% if tools %}{{ '\n\n# Tools' }}{% for tool in tools %}"
    "{{ '\n' + tool | tojson }}{% endfor %}{% endif %}{{ '</s>' }}{% for m in messages if"
    " m['role'] != 'system' %}{% if m['role'] == 'tool' %}{{ '<user><result>' + m['content'] +"
    " '</result></s>' }}{% else %}{{ '<' + m['role'] + '>' + m['content'] }}{% for call in"
    " m['tool_calls'] or () %}{{ '\n<tool_call>\n' + call['function'] | tojson +"
    " '\n</tool_call>' }}{% endfor %}{{ '</s>' }}{% endif %}{% endfor %}<assistant>"
)
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Be kind.",  # also a system prompt in tests
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
SHAPE = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12 if DEVICE.type == "cpu" else 16,  # a GPU's kernels take multiples of 8
    "max_position_embeddings": 512,
    "vocab_size": 400,
    "eos_token_id": 5,
    "bos_token_id": 1,
    "pad_token_id": 0,
}
GPTJ = {"n_embd": 48, "n_layer": 3, "n_head": 4, "rotary_dim": 8}
TEXT = (
    "the garden is green and the river runs slowly past the old town where people talk about music"
    " bread cheese and rain " * 3
)


@cache
def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """A byte-level BPE of 400 tokens."""
    byte_pairs = Tokenizer(models.BPE())
    byte_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    byte_pairs.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=alphabet
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_pairs,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        chat_template=template,
    )


@cache
@torch.inference_mode(False)  # cached for tests outside inference mode
def model(kind: str = "llama", seed: int = 0, **options) -> LocalModel:
    """A random model of the kind, with weights large enough that its replies depend on the whole
    prompt. Options are hashable: tuples become lists.
    """
    torch.manual_seed(seed)
    lists = {k: list(v) for k, v in options.items() if isinstance(v, tuple)}
    config = AutoConfig.for_model(kind, **{**SHAPE, **options, **lists})
    hf = AutoModelForCausalLM.from_config(config).eval().to(DEVICE)
    steerable = install(hf)
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    tokens = tokenizer()
    return LocalModel(
        f"tiny {kind}",
        Fingerprint(hf, tokens),
        hf,
        tokens,
        stop_ids(hf, tokens),
        reuses_cache(hf),
        steerable,
    )


def scheduler_of(tiny: LocalModel, serving: Serving | None = None) -> Scheduler:
    """A scheduler without requests, as a session of the model has one."""
    return Scheduler(tiny.runner, tiny.stop_ids, tiny.batch_size, serving)


def tool_talk(system: str, user: str = "What is it?", answer: str = "It is nine."):
    """Messages of a dialog in which the assistant called the tool."""
    function = {"name": "look", "arguments": {"at": "the price", "many": 2}}
    call = {"id": "call00001", "type": "function", "function": function}
    return (
        *chat(system, user),
        {"role": "assistant", "content": "I will look.", "tool_calls": [call]},
        {"role": "tool", "content": "nine", "tool_call_id": "call00001"},
        {"role": "assistant", "content": answer},
    )


def chat(system: str, *turns: str) -> tuple[dict[str, str], ...]:
    """Messages: the system prompt, unless empty, then user and assistant in turn."""
    first = ({"role": "system", "content": system},) if system else ()
    return first + tuple(
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)
    )


def outcomes(session, requests):
    """The reply to each request, or its error."""

    async def answers():
        async with session as engine:
            waiting = map(engine.generate, requests)
            return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(answers())


@dataclass(frozen=True)
class AnsweredChat:
    """A request that has ended, with all that the engine has of it."""

    chat: RenderedRequest
    state: RequestState
    outcome: Reply | Exception


def answer_all(session, requests, top_logprobs=None):
    """Submits all requests to a session that nobody else steps, and steps until they have ended."""
    chats = [session.render(request, top_logprobs) for request in requests]
    states, outcomes_of = [session.stepped.submit(chat) for chat in chats], {}
    while not all(state.done for state in states):
        outcomes_of |= {state: update.outcome for state, update in session.stepped.step().items()}
    pairs = zip(chats, states, strict=True)
    return [AnsweredChat(chat, state, outcomes_of[state]) for chat, state in pairs]


LONG = Sampling(2.0, 1.0, 20)  # hot, so that hardly any reply ends on its own


def make_requests(count, methods=()):
    talks = [chat("talk about cheese", "hello " * (n + 1)) for n in range(count)]
    return [Request(talk, methods, LONG, seed=n) for n, talk in enumerate(talks)]
