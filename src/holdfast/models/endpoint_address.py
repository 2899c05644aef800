"""The address of an endpoint, and the key for it.

For example:

    http://localhost:8000/v1    on this machine, so that it needs no key
    https://api.example.com/v1  with the key in the environment variable OPENAI_API_KEY
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import ModelError, UsageError


def read_address(base_url: str) -> SplitResult:
    """Parses the address of an endpoint; refuses any that is more, or less, than an address."""
    try:
        address = urlsplit(base_url)
        is_http = address.scheme in ("http", "https")
        is_web_address = is_http and bool(address.hostname) and address.port != 0
    except ValueError:
        is_web_address = False
    if not is_web_address:
        raise UsageError(
            f"{base_url!r} is not the web address of an endpoint; give one such as"
            " http://localhost:8000/v1.",
            option="base_url",
            value=base_url,
        )
    if address.username or address.password or address.query or address.fragment:
        raise UsageError(
            f"The base URL of {address.hostname} contains more than an address; put the key in an"
            " environment variable, and leave out any query and fragment.",
            option="base_url",
        )
    if address.path.rstrip("/").endswith("/chat/completions"):
        raise UsageError(
            f"The base URL {base_url!r} ends in /chat/completions; leave that part out.",
            option="base_url",
            value=base_url,
        )
    return address


def is_this_machine(host: str) -> bool:
    """Whether the name or the IP address of a host is that of this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def read_key(variable: str, address: SplitResult, *, needed: bool) -> str:
    """Reads an API key from an environment variable; "" if it is unset and not needed."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise UsageError(
            "Give the name of the environment variable that holds the API key, not the key itself.",
            option="api_key_env",
        )
    key = os.environ.get(variable, "").strip()
    if not key and needed and not variable.isupper():
        # the name is not shown, as it may be a key that was given by mistake
        raise ModelError(
            f"There is no API key for {address.hostname} in the environment variable that was"
            " named for it; set it, or name another variable (not the key itself).",
            option="api_key_env",
        )
    if not key and needed:
        raise ModelError(
            f"There is no API key for {address.hostname} in the environment variable {variable};"
            " set it, or name another variable.",
            option="api_key_env",
            value=variable,
        )
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise ModelError(
            f"The API key in the environment variable {variable} has blanks or other characters"
            " that no key has; set it to the key alone.",
            option="api_key_env",
            value=variable,
        )
    return key
