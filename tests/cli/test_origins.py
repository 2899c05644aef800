"""`holdfast serve --allow-origin`: the origins that it takes."""

import pytest

from holdfast.cli.serve.serve import check_origin
from holdfast.errors import UsageError


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://example.org", "http://localhost:3000", "tauri://localhost"]
)
def test_valid_origins_may_be_allowed(origin):
    check_origin(origin)


@pytest.mark.parametrize("origin", ["example.org", "https://example.org/", "https://a.org/page"])
def test_invalid_origins_are_refused(origin):
    with pytest.raises(UsageError, match="--allow-origin"):
        check_origin(origin)
