"""The address of a server that `serve` or `proxy` runs."""

import socket


def url_of(host: str, bound: socket.socket) -> str:
    """The URL of a server on this host, such as "http://127.0.0.1:8000" or "http://[::1]:8000"."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{bound.getsockname()[1]}"


def local_names(host: str) -> tuple[str, ...]:
    """The names by which this machine reaches a server that listens on `host`."""
    return ("localhost", "127.0.0.1", "::1", host)
