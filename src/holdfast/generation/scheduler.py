"""The admission loop: requests are submitted, share steps with others, and end independently.

A caller submits a request and steps the scheduler until the request is done. When a request joins
depends only on the requests and their replies, so that the same ones are always computed by the
same arithmetic.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from holdfast.errors import ModelError
from holdfast.generation.decoder import Decoder
from holdfast.generation.memory import halve_batch, ran_out_of_memory
from holdfast.generation.model_runner import ModelRunner
from holdfast.generation.prefix_cache import PrefixCache, beginning_key
from holdfast.generation.request_errors import name_error
from holdfast.generation.token_requests import RequestState, TokenRequest

# waiting requests join once there is more than one for this many running sequences: a prefill costs
# about as much as a step
_RUNNING_PER_JOINING = 4
_STEPS_BETWEEN_CLEARS = 256  # shared prefixes are dropped at most once in this many steps
_MAX_DOUBLINGS = 6  # the wait before `max_sequences` regrows doubles at most this many times
_TOKENS_PER_PASS = 128  # tokens that cost about as much as the fixed part of a forward pass
# tokens of one prefill, padding included; a single request may have more. On a CPU, the activations
# of more tokens would take a good part of a run's memory.
_MAX_PREFILL_TOKENS = 16_384
_MAX_PREFILL_TOKENS_ON_CPU = 1_024
# columns of computed keys that one prefill reads, padding included; more if at least a quarter of
# them is used
_MAX_PREFILL_COLUMNS = 65_536


@dataclass(frozen=True)
class Serving:
    """How a long-running server admits requests that arrive at any time."""

    prefix_cache: PrefixCache  # keeps keys and values for later requests
    # the most steps that a request waits for others to join together, although there is room for it
    max_wait: int = 4
    # steps until a halved `max_sequences` grows by a quarter; the number doubles each time it is
    # halved again
    regrow_steps: int = 256


class Scheduler:
    """Runs the requests of one model, as many at a time as there is room for.

    Args:
        runner: the model.
        stop_ids: the tokens that end a reply.
        batch_size: the most sequences forwarded together.
        serving: how to admit requests that arrive at any time; None if all are known from the
            start, so that fewer passes matter more than short waits.

    Attributes:
        max_sequences: the most sequences forwarded together at present; lowered when memory runs
            out.
        halvings: the values that it was lowered to, in order.
        decoder: generates the replies of the running requests.
        running: the requests that are being forwarded, in order of admission.
    """

    def __init__(
        self,
        runner: ModelRunner,
        stop_ids: frozenset[int],
        batch_size: int,
        serving: Serving | None = None,
    ):
        self.runner = runner
        self.stop_ids = stop_ids
        self.batch_size = batch_size
        self.serving = serving
        self.prefix_cache = None if serving is None else serving.prefix_cache
        self.max_sequences = batch_size if runner.batched else 1
        self.halvings: list[int] = []
        # in total, and since `max_sequences` last changed
        self._steps = self._steps_since_resize = 0
        self._clear_from = 0  # from this step on, shared prefixes are dropped first
        self.decoder = Decoder(runner, stop_ids, self.prefix_cache)
        self._urgent: deque[RequestState] = deque()  # whose results other requests need
        self._waiting: deque[RequestState] = deque()
        self.running: list[RequestState] = []
        self._ended: list[RequestState] = []  # ended without running; the next step returns them

    def __len__(self) -> int:
        """The number of requests that no step has returned yet."""
        return len(self._urgent) + len(self._waiting) + len(self.running) + len(self._ended)

    def submit(self, request: TokenRequest) -> RequestState:
        """Queues a request; its reply is limited to the room in the model's context.

        A request that the context leaves too little room for ends at once, with the reason
        "context".
        """
        context = self.runner.context
        max_new_tokens = request.sampling.max_new_tokens
        room = context - request.max_prompt_len if context else max_new_tokens
        if context and room < max(1, min(request.room, context // 4)):
            ended = RequestState(request, stop_reason="context")
            self._ended.append(ended)
            return ended
        if room < max_new_tokens:
            request = replace(request, sampling=replace(request.sampling, max_new_tokens=room))
        state = RequestState(request, self._steps)
        self._queue_of(state).append(state)
        return state

    def cancel(self, state: RequestState) -> None:
        """Cancels a request and frees its slots at once; does nothing if it has ended."""
        if state.done:
            return
        state.cancelled = True
        for queue in (self._urgent, self._waiting):
            if state in queue:
                queue.remove(state)
        if state in self.running:
            self.decoder.remove(state)
            self.running.remove(state)

    def step(self) -> list[RequestState]:
        """Makes a pass, of joining requests or of all running ones; returns those that ended."""
        ended_before = self._ended
        self._ended = []
        self._steps += 1
        joining = self._choose_joining()
        try:
            ended = self._prefill_or_decode(joining)
        except Exception as error:
            if not ran_out_of_memory(error):
                raise
            ended = None
        if ended is None:  # not in the handler: its error would keep the computed tensors alive
            return ended_before + self._restart()
        self._regrow()
        for state in self.running:
            state.commit()
        for state in ended:
            self.running.remove(state)
            if state.error is not None and state.request.name:
                name_error(state.error, state.request.name)
        return ended_before + ended

    def _queue_of(self, state: RequestState) -> deque[RequestState]:
        """The queue in which a request waits."""
        return self._urgent if state.request.keep else self._waiting

    # Admission

    def _choose_joining(self) -> list[RequestState]:
        """Takes the requests to admit now from the queues: urgent ones first, then waiting ones."""
        num_running = len(self.decoder)
        joining = list[RequestState]()
        num_joining = 0  # sequences
        for state in chain(self._urgent, self._waiting):
            num_joining += len(state.request.prompts)
            if num_running + num_joining > self.max_sequences and (num_running or joining):
                break
            joining.append(state)
        max_wait = math.inf if self.serving is None else self.serving.max_wait
        waited = max((self._steps - state.submitted for state in joining), default=0)
        if len(joining) <= num_running // _RUNNING_PER_JOINING and waited <= max_wait:
            return []
        for _ in joining:
            (self._urgent or self._waiting).popleft()
        followers = self._find_followers(joining)
        self._waiting.extendleft(reversed(followers))
        return [state for state in joining if state not in followers]

    def _find_followers(self, joining: Sequence[RequestState]) -> list[RequestState]:
        """Finds requests that should wait for another joining one, to reuse its keys and values.

        Requests with the same beginning follow the first of them if together they save more tokens
        than a separate pass costs.
        """
        if self.prefix_cache is None:
            return []
        by_beginning: dict[Hashable, list[RequestState]] = {}
        for state in joining:
            if state.request.shares_kv:
                by_beginning.setdefault(beginning_key(state.request.prompts[0]), []).append(state)
        followers = list[RequestState]()
        for first, *others in by_beginning.values():
            leader = first.request.prompts[0]
            gains = [self.prefix_cache.gain(other.request.prompts[0], leader) for other in others]
            if sum(gains) > _TOKENS_PER_PASS:
                followers += [other for other, gain in zip(others, gains, strict=True) if gain]
        return followers

    def _prefill_or_decode(self, joining: Sequence[RequestState]) -> list[RequestState]:
        """Prefills joining requests, or decodes if there are none; returns the ended ones."""
        if not joining:
            return self.decoder.decode() if self.running else []
        self.running += joining
        for state in joining:
            if self.prefix_cache is not None and state.request.shares_kv:
                state.start([self.prefix_cache.find(prompt) for prompt in state.request.prompts])
            else:
                cached = [prompt.cached_kv for prompt in state.request.prompts]
                state.start([() if kv is None else (kv,) for kv in cached])
        ended = []
        on_cpu = self.runner.device.type == "cpu"
        max_tokens = _MAX_PREFILL_TOKENS_ON_CPU if on_cpu else _MAX_PREFILL_TOKENS
        for group in group_into_prefills(joining, max_tokens):
            ended += self.decoder.prefill(group)
        return ended

    # Memory

    def _restart(self) -> list[RequestState]:
        """Queues all running requests again after memory ran out.

        Makes room by dropping shared prefixes or, if that was done recently, by halving
        `max_sequences`. Returns the requests that ended: all of them if memory ran out with a
        single one.
        """
        states = self.running
        self.running = []
        for state in states:
            state.roll_back()
        self.decoder = Decoder(self.runner, self.stop_ids, self.prefix_cache)
        if (
            self.prefix_cache is not None
            and self.prefix_cache.size
            and self._steps >= self._clear_from
        ):
            self.prefix_cache.clear()
            self._clear_from = self._steps + _STEPS_BETWEEN_CLEARS
        else:
            try:
                self.max_sequences = halve_batch(len(states), self.runner.name, self.batch_size)
            except ModelError as error:
                states[0].error = error
                return states
            self.halvings.append(self.max_sequences)
            self._steps_since_resize = 0
        for state in reversed(states):
            self._queue_of(state).appendleft(state)
        return []

    def _regrow(self) -> None:
        """Raises `max_sequences` again, enough steps after memory ran out."""
        if self.serving is None or not self.halvings or self.max_sequences >= self.batch_size:
            return
        self._steps_since_resize += 1
        doublings = min(len(self.halvings) - 1, _MAX_DOUBLINGS)
        if self._steps_since_resize >= self.serving.regrow_steps << doublings:
            regrown = self.max_sequences + self.max_sequences // 4 + 1
            self.max_sequences = min(self.batch_size, regrown)
            self._steps_since_resize = 0


def group_into_prefills(
    states: Sequence[RequestState], max_tokens: int = _MAX_PREFILL_TOKENS
) -> list[list[RequestState]]:
    """Groups joining requests of similar lengths into prefills, at the lowest total cost.

    The sequences of a group are padded to the longest, and each pass has a fixed cost. With
    requests sorted by length, groups are consecutive, so dynamic programming finds the best split.

    Args:
        states: the joining requests.
        max_tokens: of one prefill, padding included; a single request may have more.
    """
    ordered = sorted(states, key=lambda state: state.num_new_tokens, reverse=True)
    # for the first n requests: their lowest cost, and where their last group starts
    lowest_costs = [0.0]
    start_of = [0]
    for stop in range(1, len(ordered) + 1):
        pass_costs = _costs_of_last_pass(ordered[:stop], max_tokens)
        costs = [before + cost for before, cost in zip(lowest_costs, pass_costs, strict=True)]
        lowest_costs.append(min(costs))
        start_of.append(costs.index(lowest_costs[-1]))
    groups = []
    stop = len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups


def _costs_of_last_pass(states: Sequence[RequestState], max_tokens: int) -> list[float]:
    """The cost of a prefill of all requests from each one on; infinite if they do not fit into it.

    Args:
        states: longest first.
        max_tokens: of the prefill, padding included; the last request alone always fits.
    """
    costs = [math.inf] * len(states)
    num_sequences = 0
    num_reused = 0  # in all
    max_reused = 0
    for start in reversed(range(len(states))):
        reused_lengths = states[start].reused_lengths
        num_sequences += len(reused_lengths)
        num_reused += sum(reused_lengths)
        max_reused = max(max_reused, *reused_lengths)
        padded = num_sequences * states[start].num_new_tokens
        max_columns = max(_MAX_PREFILL_COLUMNS, 4 * num_reused)
        fits = padded <= max_tokens and num_sequences * max_reused <= max_columns
        if fits or start == len(states) - 1:
            costs[start] = _TOKENS_PER_PASS + padded
    return costs
