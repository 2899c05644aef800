"""Holdfast's engine as a model of lm-evaluation-harness.

Contexts are plain texts or, with `--apply_chat_template`, chats, which can be steered towards their
system prompt. The harness requires models to inherit from `TemplateLM`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval import utils
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import chunks
from tqdm import tqdm

from holdfast.chat.messages import Message
from holdfast.errors import PromptTooLong, UnknownName, UsageError
from holdfast.generation.reply_scoring import score_rows
from holdfast.generation.rows import Row, Stream
from holdfast.integrations.lm_eval.harness_generation import (
    Generation,
    generate_all,
    read_options,
)
from holdfast.methods import parse, spec_of
from holdfast.models.loading import load
from holdfast.models.requests import Request
from holdfast.seeds import seed_of

_LOADING = ("device", "dtype", "device_map", "prefix_memory", "trust_remote_code", "batch_size")
_ARGUMENTS = ("pretrained", "method", "seed", *_LOADING)
# the context length if the configuration has none, as in the harness's own models
_DEFAULT_CONTEXT = 2_048

# The harness passes contexts as strings. A chat rendered to such a string would lose its roles, and
# with them its span, so chats are passed as JSON and rendered here.
_KEY = "holdfast_chat"
_BEGINNING = f'{{"{_KEY}": '

# two texts for the harness's cache, or None; the tokens of the context; those of the continuation
Encoded = tuple[tuple[str, str] | None, list[int], list[int]]


class HoldfastLM(TemplateLM):
    """A model in this process, whose attention can be steered if contexts are chats.

    Args:
        pretrained: "default", a folder, or a name on the hub.
        method: spec string of the methods that steer every chat.
        seed: seed of the draws in tasks that set a temperature.
        batch_size: the number of rows to forward together at most; "auto" is the default of
            `holdfast.load`.
        max_batch_size: ignored; the harness gives it to every model.
        arguments: further arguments of `holdfast.load`.

    Raises:
        UsageError: an argument or a method is unknown.
        ModelError: the model cannot be loaded, or cannot apply the method.
    """

    def __init__(
        self,
        pretrained: str = "default",
        method: str = "none",
        seed: int = 0,
        batch_size: int | str = "auto",
        max_batch_size: int | None = None,
        **arguments: Any,
    ):
        super().__init__()
        for name in arguments:
            if name not in _LOADING:
                raise UnknownName("argument", name, _ARGUMENTS, owner="A holdfast model")
        if not str(batch_size).startswith("auto"):
            arguments["batch_size"] = _read_batch_size(batch_size)
        self.methods = parse(method)
        self.seed = seed
        self.holdfast_model = load(pretrained, **arguments)
        self.holdfast_model.check(self.methods)
        self.tokenizer = self.holdfast_model.tokenizer
        # contexts share prefixes
        self.session = self.holdfast_model.session(long_lived=True)
        self._draws = itertools.count()

    @property
    def eot_token_id(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """The token that precedes a text without a context."""
        first = self.tokenizer.bos_token_id
        return self.eot_token_id if first is None else int(first)

    @property
    def max_length(self) -> int:
        return self.holdfast_model.context or _DEFAULT_CONTEXT

    @property
    def tokenizer_name(self) -> str:
        return f"holdfast-{self.holdfast_model.fingerprint}"

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """Returns the model's own template, for the record; refuses one that is given by name."""
        if isinstance(chat_template, str):
            raise UsageError(
                f"holdfast models use their own chat template, not {chat_template!r}; give"
                " `--apply_chat_template` without a name.",
                option="chat_template",
                value=chat_template,
            )
        return super().chat_template(chat_template)

    def apply_chat_template(
        self, chat_history: list[Message], add_generation_prompt: bool = True
    ) -> str:
        """Writes a chat as JSON, which keeps its roles; the template is applied when it is read."""
        return write_chat(chat_history, ends_open=add_generation_prompt)

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **_: Any
    ) -> list[int]:
        """Returns a text's tokens, after the token with which this tokenizer begins every text.

        That token is not added if the text begins with it already.
        """
        if add_special_tokens is None:
            first = str(self.tokenizer.decode(self.prefix_token_id))
            add_special_tokens = not string.startswith(first)
        return list(self.tokenizer.encode(string, add_special_tokens=add_special_tokens))

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Returns each continuation's log-probability, and whether it is the greedy one."""
        likelihoods: dict[int, tuple[float, bool]] = {}
        chats: dict[str, list[int]] = {}
        plain = list[int]()
        for number, request in enumerate(requests):
            if self._chat(request.args[0]) is None:
                plain.append(number)
            else:
                chats.setdefault(request.args[0], []).append(number)
        plain_scores = super().loglikelihood([requests[number] for number in plain], disable_tqdm)
        likelihoods.update(zip(plain, plain_scores, strict=True))
        progress = tqdm(chats.items(), "Scoring replies to chats", disable=disable_tqdm)
        for group in chunks(progress, self.holdfast_model.batch_size):
            group_chats = [self._chat(context) or () for context, _ in group]
            chat_requests = [Request(chat, self.methods) for chat in group_chats]
            replies = [[requests[number].args[1] for number in numbers] for _, numbers in group]
            scores = self.session.score_batch(chat_requests, replies)
            for (_, numbers), scored in zip(group, scores, strict=True):
                pairs = zip(scored.log_probabilities, scored.greedy, strict=True)
                likelihoods.update(zip(numbers, pairs, strict=True))
        for number in itertools.chain.from_iterable(chats.values()):
            self.cache_hook.add_partial("loglikelihood", requests[number].args, likelihoods[number])
        return [likelihoods[number] for number in range(len(requests))]

    def _loglikelihood_tokens(
        self, requests: list[Encoded], disable_tqdm: bool = False, **options: Any
    ) -> list[tuple[float, bool]]:
        """Does the same as `loglikelihood`, for plain texts that the harness has tokenized."""
        scores = list[tuple[float, bool]]()
        progress = tqdm(requests, "Scoring continuations", disable=disable_tqdm)
        for group in chunks(progress, self.holdfast_model.batch_size):
            for _, context, continuation in group:
                self._check_room(len(context) + len(continuation) - 1)
            rows = [Row((Stream(tuple(c), (False,) * len(c)),)) for _, c, _ in group]
            continuations = [[tuple(continuation)] for _, _, continuation in group]
            scored_rows = score_rows(
                self.holdfast_model.runner, rows, continuations, self.holdfast_model.batch_size
            )
            for (texts, _, _), row in zip(group, scored_rows, strict=True):
                answer = row.scored.log_probabilities[0], row.scored.greedy[0]
                scores.append(answer)
                if texts is not None:
                    self.cache_hook.add_partial("loglikelihood", texts, answer)
        return scores

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Returns the log-probabilities of whole texts, cut into windows that fit the context.

        A method is refused, as texts have no system prompt.
        """
        windows = [list(self._windows(*request.args)) for request in requests]
        window_scores = iter(
            self._loglikelihood_tokens(list(itertools.chain(*windows)), disable_tqdm)
        )
        scores = [sum(next(window_scores)[0] for _ in window) for window in windows]
        for request, value in zip(requests, scores, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, value)
        return scores

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Generates replies, each up to its first stop string."""
        generations = [self._generation(request) for request in requests]
        replies = generate_all(self.session, generations, self.tokenizer, quiet=disable_tqdm)
        for request, reply in zip(requests, replies, strict=True):
            self.cache_hook.add_partial("generate_until", request.args, reply)
        return replies

    def _chat(self, context: str) -> tuple[Message, ...] | None:
        """Returns the chat in a context; None if it is a plain text, which no method can steer."""
        chat = read_chat(context)
        if self.methods and context and not any(m["role"] == "system" for m in chat or ()):
            raise UsageError(
                f"{spec_of(self.methods)} holds on to a system prompt, and the context"
                f" {context[:60]!r} has none; add `--apply_chat_template` and"
                " `--system_instruction`.",
                option="method",
                value=spec_of(self.methods),
            )
        return chat

    def _generation(self, request: Instance) -> Generation:
        """Reads a request of the harness for a reply."""
        context, options = request.args
        chat = self._chat(context)
        messages = chat or ({"role": "user", "content": context},)
        draw = (request.task_name, request.doc_id, next(self._draws))
        seed = seed_of("lm-eval", self.seed, *draw)
        end = str(self.tokenizer.decode([self.eot_token_id]))
        request = Request(messages, self.methods, seed=seed, plain=chat is None)
        return read_options(request, options, end)

    def _windows(self, text: str) -> Iterator[Encoded]:
        """Cuts a text into windows that fit the context."""
        self._chat(text)
        pieces = utils.get_rolling_token_windows(
            token_list=self.tok_encode(text),
            prefix_token=self.prefix_token_id,
            max_seq_len=self.max_length,
            context_len=1,
        )
        for context, continuation in map(utils.make_disjoint_window, pieces):
            yield None, context, continuation

    def _check_room(self, tokens: int) -> None:
        """Raises `PromptTooLong` if the model cannot see this many tokens."""
        if tokens > self.max_length:
            raise PromptTooLong(
                f"A context and its continuation take {tokens} tokens, and"
                f" {self.holdfast_model.name} sees {self.max_length}; give fewer examples with"
                " `--num_fewshot`.",
                value=tokens,
                allowed=self.max_length,
            )


def _read_batch_size(batch_size: int | str) -> int:
    if str(batch_size).isdecimal():
        return int(batch_size)
    raise UsageError(
        f"`--batch_size` is auto or a whole number, not {batch_size!r}.",
        option="batch_size",
        value=batch_size,
        allowed="auto or a whole number",
    )


def write_chat(messages: Sequence[Message], *, ends_open: bool) -> str:
    """Writes a chat as a string that keeps its roles, for `read_chat`."""
    if not ends_open:
        raise UsageError(
            f"The task begins the model's reply itself ({messages[-1]['content']!r}), and a chat of"
            " holdfast models ends with the user's message; take a task without gen_prefix.",
            option="gen_prefix",
            value=messages[-1]["content"],
        )
    return json.dumps({_KEY: list(messages)}, ensure_ascii=False)


def read_chat(context: str) -> tuple[Message, ...] | None:
    """Returns the messages of a context that `write_chat` wrote; None for any other text."""
    if not context.startswith(_BEGINNING):
        return None
    return tuple(json.loads(context)[_KEY])
