"""Holdfast's engine as a model of lm-evaluation-harness.

Contexts are plain texts or, with `--apply_chat_template`, chats, which can be steered towards their
system prompt. The harness requires models to inherit from `TemplateLM`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from lm_eval import utils
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import chunks
from tqdm import tqdm

from holdfast.chat.messages import Message
from holdfast.errors import PromptTooLong, UnknownName, UsageError
from holdfast.generation.reply_scoring import score_requests
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.integrations.lm_eval.harness_generation import (
    Generation,
    generate_replies,
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
_BEGINNING = f'{{"{_KEY}": '  # of such a chat, as `json.dumps` writes it

# the log-probability of a continuation; whether it is the greedy one
Loglikelihood = tuple[float, bool]
# two texts for the harness's cache, or None; the tokens of the context; those of the continuation
Encoded = tuple[tuple[str, str] | None, list[int], list[int]]


class HoldfastLM(TemplateLM):
    """A model in this process, whose attention can be steered if contexts are chats.

    Args:
        pretrained: "default", a folder, or a name on the hub.
        method: spec string of the methods that steer every chat.
        seed: seed of the draws in tasks that set a temperature.
        batch_size: the most sequences to forward together; "auto" is the default of
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
    ) -> list[Loglikelihood]:
        """Returns each continuation's log-probability, and whether it is the greedy one."""
        replies_by_chat = self._replies_by_chat(requests)
        plain = [request for request in requests if request.args[0] not in replies_by_chat]
        plain_answers = iter(super().loglikelihood(plain, disable_tqdm))
        chat_answers = self._score_replies(replies_by_chat, disable_tqdm)
        answers: list[Loglikelihood] = []
        for request in requests:
            context, reply = request.args
            if context not in replies_by_chat:
                answers.append(next(plain_answers))
                continue
            answer = chat_answers[context, reply]
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
            answers.append(answer)
        return answers

    def _replies_by_chat(self, requests: list[Instance]) -> dict[str, list[str]]:
        """The replies to score, by the context that they reply to; without plain texts."""
        replies: dict[str, list[str]] = {}
        for request in requests:
            context, reply = request.args
            if self._read_context(context) is None:
                continue
            replies_to_context = replies.setdefault(context, [])
            if reply not in replies_to_context:
                replies_to_context.append(reply)
        return replies

    def _score_replies(
        self, replies_by_chat: dict[str, list[str]], disable_tqdm: bool
    ) -> dict[tuple[str, str], Loglikelihood]:
        """Scores replies to chats; returns the answer to each context and reply."""
        answers: dict[tuple[str, str], Loglikelihood] = {}
        progress = tqdm(replies_by_chat, "Scoring replies to chats", disable=disable_tqdm)
        for contexts in chunks(progress, self.holdfast_model.batch_size):
            chats = [Request(read_chat(context) or (), self.methods) for context in contexts]
            replies = [replies_by_chat[context] for context in contexts]
            scores = self.session.score_batch(chats, replies)
            for context, texts, scored in zip(contexts, replies, scores, strict=True):
                answers_to_context = zip(scored.log_probabilities, scored.greedy, strict=True)
                for text, answer in zip(texts, answers_to_context, strict=True):
                    answers[context, text] = answer
        return answers

    def _loglikelihood_tokens(
        self, requests: list[Encoded], disable_tqdm: bool = False, **options: Any
    ) -> list[Loglikelihood]:
        """Does the same as `loglikelihood`, for plain texts that the harness has tokenized."""
        answers: list[Loglikelihood] = []
        progress = tqdm(requests, "Scoring continuations", disable=disable_tqdm)
        for group in chunks(progress, self.holdfast_model.batch_size):
            for _, context, continuation in group:
                # the last token is predicted, but not read
                self._check_room(len(context) + len(continuation) - 1)
            token_requests = [_without_span(context) for _, context, _ in group]
            continuations = [[tuple(continuation)] for _, _, continuation in group]
            scored_requests = score_requests(
                self.holdfast_model.runner,
                token_requests,
                continuations,
                self.holdfast_model.batch_size,
            )
            for (texts, _, _), result in zip(group, scored_requests, strict=True):
                answer = result.scored.log_probabilities[0], result.scored.greedy[0]
                answers.append(answer)
                if texts is not None:
                    self.cache_hook.add_partial("loglikelihood", texts, answer)
        return answers

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Returns the log-probabilities of whole texts, cut into windows that fit the context.

        A method is refused, as texts have no system prompt.
        """
        windows_by_text: list[list[Encoded]] = []
        for request in requests:
            (text,) = request.args
            self._check_can_steer(text, read_chat(text))
            windows_by_text.append(self._windows(text))
        windows = [*itertools.chain.from_iterable(windows_by_text)]
        answers = iter(self._loglikelihood_tokens(windows, disable_tqdm))
        scores: list[float] = []
        for request, windows_of_text in zip(requests, windows_by_text, strict=True):
            score = sum(
                log_probability for log_probability, _ in islice(answers, len(windows_of_text))
            )
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, score)
            scores.append(score)
        return scores

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Generates replies, each up to its first stop string."""
        generations = [self._generation(request) for request in requests]
        replies = generate_replies(self.session, generations, self.tokenizer, quiet=disable_tqdm)
        for request, reply in zip(requests, replies, strict=True):
            self.cache_hook.add_partial("generate_until", request.args, reply)
        return replies

    def _read_context(self, context: str) -> tuple[Message, ...] | None:
        """Returns the chat in a context; None if it is a plain text, which no method can steer."""
        chat = read_chat(context)
        self._check_can_steer(context, chat)
        return chat

    def _check_can_steer(self, context: str, chat: tuple[Message, ...] | None) -> None:
        """Refuses a context without a system prompt if there is a method to hold on to it."""
        has_system = any(message["role"] == "system" for message in chat or ())
        if self.methods and context and not has_system:
            raise UsageError(
                f"{spec_of(self.methods)} holds on to a system prompt, and the context "
                f"{context[:60]!r} has none; add `--apply_chat_template` and "
                "`--system_instruction`.",
                option="method",
                value=spec_of(self.methods),
            )

    def _generation(self, instance: Instance) -> Generation:
        """Reads a request of the harness for a reply."""
        context, generation_kwargs = instance.args
        chat = self._read_context(context)
        end = str(self.tokenizer.decode([self.eot_token_id]))
        options = read_options(generation_kwargs, end)
        draw = (instance.task_name, instance.doc_id, next(self._draws))
        request = Request(
            chat or ({"role": "user", "content": context},),
            self.methods,
            options.sampling,
            seed=seed_of("lm-eval", self.seed, *draw),
            plain=chat is None,
        )
        return Generation(request, options.stops)

    def _windows(self, text: str) -> list[Encoded]:
        """Cuts a text into windows that fit the context."""
        pieces = utils.get_rolling_token_windows(
            token_list=self.tok_encode(text),
            prefix_token=self.prefix_token_id,
            max_seq_len=self.max_length,
            context_len=1,
        )
        windows = map(utils.make_disjoint_window, pieces)
        return [(None, context, continuation) for context, continuation in windows]

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


def _without_span(token_ids: Sequence[int]) -> TokenRequest:
    """Builds a request of one prompt, none of whose tokens are to be held on to."""
    return TokenRequest((TokenPrompt(tuple(token_ids), (False,) * len(token_ids)),))


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
