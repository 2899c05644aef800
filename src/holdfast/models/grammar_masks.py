"""Compiles grammars for a tokenizer with llguidance, which computes the masks of next tokens.

The mask after a token is computed in a thread while the model makes its next pass, so a step only
waits for it if the pass takes less time.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import ModelError, UsageError, cut, option
from holdfast.extras import import_extra
from holdfast.models.grammars import Grammar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_COMPILED = 128  # grammars that are kept compiled, per tokenizer
_MAX_REASON = 300  # characters of llguidance's reason, which may quote the grammar
_LOCK = threading.Lock()  # of the compilers below
_WORKERS = ThreadPoolExecutor(2, "holdfast-grammar")


class _Matcher:
    """Follows one reply through a grammar; each mask is computed once, in a thread."""

    def __init__(self, matcher: Any, description: str):
        self._matcher = matcher
        self._description = description
        self._consumed: list[int] = []
        self._prefix: list[int] = []  # the tokens before the latest mask
        self._mask: Future[Tensor] | None = None

    def prepare(self, token_ids: Sequence[int]) -> None:
        """Begins to compute the mask of the token after these."""
        if self._mask is not None:
            self._mask.exception()  # waits, as a matcher computes one mask at a time
        self._prefix = list(token_ids)
        self._mask = _WORKERS.submit(self._compute, self._prefix)

    def allowed(self, token_ids: Sequence[int]) -> Tensor:
        """The mask of the tokens that may come after these: bool [vocabulary of the tokenizer]."""
        if self._mask is None or self._prefix != list(token_ids):
            self.prepare(token_ids)
        assert self._mask is not None
        return self._mask.result()

    def _compute(self, token_ids: list[int]) -> Tensor:
        if token_ids[: len(self._consumed)] != self._consumed:  # a failed step took tokens back
            self._matcher.reset()
            self._consumed = []
        self._matcher.consume_tokens(token_ids[len(self._consumed) :])
        self._consumed = token_ids
        if not self._matcher.is_error():
            packed = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():
            raise ModelError(
                f"The grammar of {self._description} allows nothing after {len(token_ids)} tokens"
                f" ({_reason(self._matcher.get_error())}); give a simpler one."
            )
        return torch.from_numpy(np.unpackbits(packed, bitorder="little").view(np.bool_))


@dataclass(frozen=True)
class CompiledGrammar:
    """A grammar for one tokenizer, as the engine uses it."""

    description: str
    start: Any = field(repr=False)  # llguidance's matcher at the beginning of a reply

    def matcher(self) -> _Matcher:
        """A matcher at the beginning of a reply."""
        return _Matcher(self.start.deep_copy(), self.description)


class GrammarCompiler:
    """Compiles grammars for the tokenizer of a model whose replies end with one of `stop_ids`."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, stop_ids: frozenset[int]):
        from llguidance.hf import from_tokenizer

        self._tokenizer = from_tokenizer(tokenizer, eos_token=sorted(stop_ids))
        self._compiled: OrderedDict[Grammar, CompiledGrammar] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, grammar: Grammar) -> CompiledGrammar:
        """Compiles a grammar, or returns it from the cache.

        Raises:
            UsageError: the grammar needs a feature that llguidance does not implement.
        """
        from llguidance import LLMatcher

        with self._lock:
            if (cached := self._compiled.get(grammar)) is not None:
                self._compiled.move_to_end(grammar)
                return cached
        start = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(grammar.source), log_level=0)
        if start.is_error():
            raise UsageError(
                f"{option(grammar.option)} asks for {grammar.description}, which cannot be enforced"
                f" ({_reason(start.get_error())}); correct that part, or leave it out.",
                option=grammar.option,
                value=grammar.description,
            )
        compiled = CompiledGrammar(grammar.description, start)
        with self._lock:
            self._compiled[grammar] = compiled
            if len(self._compiled) > _MAX_COMPILED:
                self._compiled.popitem(last=False)
        return compiled


_Compilers = dict[frozenset[int], GrammarCompiler]  # by the tokens that end a reply
_COMPILERS: weakref.WeakKeyDictionary[PreTrainedTokenizerFast, _Compilers] = (
    weakref.WeakKeyDictionary()
)


def compile_grammar(
    grammar: Grammar, tokenizer: PreTrainedTokenizerFast, stop_ids: frozenset[int]
) -> CompiledGrammar:
    """Compiles a grammar for a tokenizer.

    The first grammar takes a second or more with a large vocabulary, whose preparation is then kept
    for the others.

    Raises:
        UsageError: llguidance is not installed, or does not implement a feature of the grammar.
    """
    import_extra("llguidance", "grammar", grammar.option)
    with _LOCK:
        compilers = _COMPILERS.setdefault(tokenizer, {})
        if stop_ids not in compilers:
            compilers[stop_ids] = GrammarCompiler(tokenizer, stop_ids)
        compiler = compilers[stop_ids]
    return compiler.compile(grammar)


def _reason(error: str) -> str:
    """llguidance's reason for a refusal, on one line, without the position in the grammar.

    An error such as "at 1(8): unknown name" is followed by lines of the grammar, "   1 | start: x".
    """
    without_position = re.sub(r"^at \d+\(\d+\): ", "", error)
    reason = re.split(r"\n\s*\d+ \| ", without_position)[0]
    return cut(" ".join(reason.split()), _MAX_REASON) if reason else "no reason given"
