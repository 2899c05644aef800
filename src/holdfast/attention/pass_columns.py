"""Maps the keys of a pass to columns of the text, and tells which of them are in the span."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.key_groups import Groups, Starts
from holdfast.errors import Unsteerable, UsageError


@dataclass(frozen=True)
class SpanColumns:
    """The keys of a pass that are in the span, in a form that a GPU kernel reads.

    Args:
        span: bool [row, column]; columns after the last one are not in the span.
        generated: int64 [row], the first generated column that counts as the row's span; a column
            that no row reaches if none counts.
        first: the column of the first key.
        copies: how many rows of the pass belong to each row of the span.
    """

    span: Tensor
    generated: Tensor
    first: int | Starts
    copies: int


@dataclass(eq=False)
class PassColumns:
    """The columns of the keys that the layers of a pass read.

    A token's column is its position in its row, padding included. Layers with a sliding window read
    only the last keys. So when the model makes a mask for a number of keys, it reports the column
    at which these begin, and a layer is recognised by its number of keys.
    """

    steering: BatchSteering
    _firsts: dict[int, int | Starts] = field(default_factory=dict, init=False)  # by number of keys
    # number of tokens so far, as reported by the model; None if only the device knows it
    _tokens: int | None = field(default=0, init=False)

    def clear(self) -> None:
        """Forgets the columns that were reported for the previous pass."""
        self._firsts.clear()

    def report(
        self, q_offset: int | Tensor, q_length: int, kv_offset: int | Starts, kv_length: int
    ) -> None:
        """Records the columns of a mask that the model makes.

        Args:
            q_offset: the column of the first query; static caches pass a tensor.
            q_length: the number of queries.
            kv_offset: the column of the first key.
            kv_length: the number of keys.
        """
        first = not self._firsts
        self._firsts[kv_length] = kv_offset
        if isinstance(q_offset, Tensor):
            self._tokens = None
        elif first or self._tokens is not None:
            tokens = q_offset + q_length
            if not first and self._tokens is not None:
                tokens = max(tokens, self._tokens)
            self._tokens = tokens

    def first(self, keys: int) -> int | Starts:
        """Returns the column of the first key in a layer with this number of keys.

        Raises:
            Unsteerable: the keys of the layer are not tokens.
            UsageError: there are fewer tokens than the span mask has.
        """
        width = self.steering.span.shape[1]
        tokens = self._tokens if self._firsts else keys
        if tokens is not None and not self.steering.follows and tokens < width:
            raise UsageError(
                f"The span mask has {width} tokens and this pass sees {tokens}; give a mask of the"
                " whole prompt, and forward it at once.",
                option="span_mask",
                value=width,
                allowed=tokens,
            )
        if keys in self._firsts:
            return self._firsts[keys]
        if self._firsts and keys != tokens:
            raise Unsteerable(
                f"A layer has {keys} keys, but the text has"
                f" {'another number of' if tokens is None else tokens} tokens, so its keys are not"
                " tokens and cannot be steered; use prompt methods."
            )
        return max(0, width - keys) if self.steering.follows else 0

    def has_generated(self, keys: int) -> bool:
        """Whether any key is a generated token that some method counts as the span."""
        first = self.first(keys)
        generated = self.steering.first_generated
        firsts = first.columns if isinstance(first, Starts) else [first] * len(generated)
        rows = zip(firsts, self.steering.includes_generated, generated, strict=True)
        return any(included and first + keys > start for first, included, start in rows)

    def is_two_groups(self, keys: int) -> bool:
        """Whether each row's keys fall into two groups that all its methods agree on."""
        return not self.steering.disagrees or not self.has_generated(keys)

    def groups(self, keys: int) -> Groups:
        """Returns the ranges of keys that contain the two groups; reads nothing from the device."""
        first = self.first(keys)
        extent = self.steering.extent
        if isinstance(first, Starts):
            return extent.groups_by_row(first.columns, keys)
        return extent.groups(first, first + keys)

    def span(self, rows: int, keys: int) -> Tensor:
        """Returns the keys of the span without generated tokens, bool [row, key]."""
        first = self.first(keys)
        span = self.steering.span
        width = span.shape[1]
        if isinstance(first, Starts):
            columns = first.on_device + torch.arange(keys, device=span.device)
            span = span.gather(1, columns.clamp(max=width - 1)) & (columns < width)
        else:
            span = span[:, first : first + keys]
            if span.shape[1] < keys:
                span = pad(span, (0, keys - span.shape[1]))
        return self._repeat_per_row(span, rows)

    def generated(self, rows: int, keys: int) -> Tensor | None:
        """Returns the generated keys outside the span, bool [row, key].

        None if no method counts generated tokens as the span.
        """
        if not self.has_generated(keys):
            return None
        generated = self._keys_from(self.steering.first_generated_on_device, keys)
        return self._repeat_per_row(generated, rows) & ~self.span(rows, keys)

    def members(self, rows: int, keys: int) -> Tensor:
        """Returns the keys of the first group, bool [row, key].

        These are the span and, in rows whose methods count them as span, the generated tokens.
        """
        span = self.span(rows, keys)
        if not self.has_generated(keys):
            return span
        return span | self._repeat_per_row(self._keys_from(self.steering.included_from, keys), rows)

    def for_kernel(self, rows: int, keys: int) -> SpanColumns:
        """Describes the same groups for a kernel that finds each key's group itself."""
        steering = self.steering
        copies = self.steering.copies_of(rows)
        span = steering.span.contiguous()
        return SpanColumns(span, steering.included_from, self.first(keys), copies)

    def _keys_from(self, columns: Tensor, keys: int) -> Tensor:
        """Returns the keys from the given column of each row on, bool [row of the span, key]."""
        first = self.first(keys)
        offsets = torch.arange(keys, device=columns.device)
        key_columns = offsets + (first.on_device if isinstance(first, Starts) else first)
        return key_columns >= columns[:, None]

    def _repeat_per_row(self, members: Tensor, rows: int) -> Tensor:
        """Repeats the rows of the span for all rows of the pass that belong to them."""
        copies = self.steering.copies_of(rows)
        return members.repeat_interleave(copies, 0) if copies > 1 else members
