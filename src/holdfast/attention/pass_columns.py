"""Maps the keys of a pass to columns of the text, and tells which of them are in the span.

In this example, S is a token of the span, and g a generated one. Only in row 0, a method counts
generated tokens as the span. For a layer that reads all keys:

    column       0  1  2  3  4          span         generated    members
    row 0        S  S  .  g  g          1 1 0 0 0    0 0 0 1 1    1 1 0 1 1
    row 1        S  S  .  g  g          1 1 0 0 0    0 0 0 1 1    1 1 0 0 0

In a layer whose window has 3 keys, these are columns 2 to 4.
"""

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
        included_from: int64 [row], the first generated column that counts as the row's span; a
            column that no row reaches if none counts.
        first_column: the column of the first key.
        copies: how many rows of the pass belong to each row of the span.
    """

    span: Tensor
    included_from: Tensor
    first_column: int | Starts
    copies: int


@dataclass(eq=False)
class PassColumns:
    """The columns of the keys that the layers of a pass read.

    A token's column is its position in its row, padding included. Layers with a sliding window read
    only the last keys. So when the model makes a mask for a number of keys, it reports the column
    at which these begin, and a layer is recognised by its number of keys.
    """

    steering: BatchSteering
    # the column of the first key, by number of keys
    _first_columns: dict[int, int | Starts] = field(default_factory=dict, init=False)
    # number of tokens so far, as reported by the model; None if only the device knows it
    _tokens: int | None = field(default=0, init=False)

    def clear(self) -> None:
        """Forgets the columns that were reported for the previous pass."""
        self._first_columns.clear()

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
        is_first_mask = not self._first_columns
        self._first_columns[kv_length] = kv_offset
        if isinstance(q_offset, Tensor):
            self._tokens = None
        elif is_first_mask:
            self._tokens = q_offset + q_length
        elif self._tokens is not None:
            self._tokens = max(self._tokens, q_offset + q_length)

    def first_column(self, keys: int) -> int | Starts:
        """Returns the column of the first key in a layer with this number of keys.

        Raises:
            Unsteerable: the keys of the layer are not tokens.
            UsageError: there are fewer tokens than the span mask has.
        """
        width = self.steering.span.shape[1]
        tokens = self._tokens if self._first_columns else keys
        if tokens is not None and not self.steering.covers_pass and tokens < width:
            raise UsageError(
                f"The span mask has {width} tokens and this pass sees {tokens}; give a mask of the"
                " whole prompt, and forward it at once.",
                option="span_mask",
                value=width,
                allowed=tokens,
            )
        if keys in self._first_columns:
            return self._first_columns[keys]
        if self._first_columns and keys != tokens:
            raise Unsteerable(
                f"A layer has {keys} keys, but the text has"
                f" {'another number of' if tokens is None else tokens} tokens, so its keys are not"
                " tokens and cannot be steered; use prompt methods."
            )
        return max(0, width - keys) if self.steering.covers_pass else 0

    def has_generated(self, keys: int) -> bool:
        """Whether any key is a generated token that some method counts as the span."""
        steering = self.steering
        generated = steering.first_generated
        first = self.first_column(keys)
        first_columns = first.columns if isinstance(first, Starts) else [first] * len(generated)
        rows = zip(first_columns, generated, steering.includes_generated, strict=True)
        return any(included and start < column + keys for column, start, included in rows)

    def agrees_on_groups(self, keys: int) -> bool:
        """Whether all methods of each row agree on which keys are the span and which the rest."""
        return not self.steering.disagrees or not self.has_generated(keys)

    def groups(self, keys: int) -> Groups:
        """Returns the ranges of keys that contain the two groups; reads nothing from the device."""
        first = self.first_column(keys)
        extent = self.steering.extent
        if isinstance(first, Starts):
            return extent.groups_by_row(first.columns, keys)
        return extent.groups(first, first + keys)

    def span(self, rows: int, keys: int) -> Tensor:
        """Returns the keys of the span without generated tokens, bool [row, key]."""
        first = self.first_column(keys)
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
        """Returns the generated keys of every row outside the span, bool [row, key].

        None if no method of any row counts generated tokens as the span.
        """
        if not self.has_generated(keys):
            return None
        generated = self._keys_from(self.steering.first_generated_on_device, keys)
        return self._repeat_per_row(generated, rows) & ~self.span(rows, keys)

    def members(self, rows: int, keys: int) -> Tensor:
        """Returns the keys that methods move attention to, bool [row, key].

        These are the span and, in rows whose methods count them as span, the generated tokens.
        """
        span = self.span(rows, keys)
        if not self.has_generated(keys):
            return span
        return span | self._repeat_per_row(self._keys_from(self.steering.included_from, keys), rows)

    def for_kernel(self, rows: int, keys: int) -> SpanColumns:
        """Describes the keys of `members` for a kernel that finds each key's group itself."""
        return SpanColumns(
            span=self.steering.span.contiguous(),
            included_from=self.steering.included_from,
            first_column=self.first_column(keys),
            copies=self.steering.copies_of(rows),
        )

    def _keys_from(self, columns: Tensor, keys: int) -> Tensor:
        """Returns the keys from the given column of each row on, bool [row of the span, key]."""
        first = self.first_column(keys)
        offsets = torch.arange(keys, device=columns.device)
        key_columns = offsets + (first.on_device if isinstance(first, Starts) else first)
        return key_columns >= columns[:, None]

    def _repeat_per_row(self, members: Tensor, rows: int) -> Tensor:
        """Repeats the rows of the span for all rows of the pass that belong to them."""
        copies = self.steering.copies_of(rows)
        return members.repeat_interleave(copies, 0) if copies > 1 else members
