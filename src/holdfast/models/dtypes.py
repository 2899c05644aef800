"""The names of the dtypes that a model's weights can have."""

from holdfast.errors import UnknownName

DTYPES = ("auto", "float16", "bfloat16", "float32", "float64")


def check_dtype(name: str) -> None:
    """Refuses a name that is no dtype of weights."""
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES)
