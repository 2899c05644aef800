"""The layer of a cache that holds nothing, which transformers has had since 5.23."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers.cache_utils import DummyLayer
else:
    try:
        from transformers.cache_utils import DummyLayer
    except ImportError:

        class DummyLayer:
            """Of no cache: an older transformers has none."""


__all__ = ["DummyLayer"]
