"""The server behind a proxy: its addresses, the connections to it, and the kinds of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

import httpx2
from starlette.types import Scope

from holdfast.errors import Unreachable, UsageError
from holdfast.serve.refusals import Refusal
from holdfast.serve.server import is_loopback

_CONNECT_SECONDS = 10.0
# Servers close idle connections, many after 5 seconds; one that is older than this is not reused.
_IDLE_SECONDS = 4.0
_API = b"/v1"  # how clients' paths begin; the path of the upstream's base URL takes its place


@dataclass(frozen=True)
class UpstreamFailure:
    """A failure of the server to answer.

    Attributes:
        code: names the failure in metrics, and in the answer to the client.
        log_text: what the server did, for the log, such as "closed the connection".
        message: explains the failure to the client.
        status: the HTTP status of the answer to the client.
    """

    code: str
    log_text: str
    message: str
    status: int = 502

    @property
    def refusal(self) -> Refusal:
        """The answer to the client."""
        return Refusal(self.message, code=self.code, status=self.status)


class Upstream:
    """The server that requests are sent to.

    Args:
        url: the base URL as a client would take it, such as https://api.openai.com/v1; its query,
            such as `?api-version=2025-04-01`, is added to every request.
        silence: how many seconds the server may be silent.

    Raises:
        UsageError: `url` is not the URL of a server.
    """

    def __init__(self, url: str, silence: float):
        try:
            self._base = httpx2.URL(url)
        except httpx2.InvalidURL:
            self._base = httpx2.URL("")
        if self._base.scheme not in ("http", "https") or not self._base.host:
            raise UsageError(
                f"--upstream {url} is not the URL of a server; give its base URL, such as"
                " http://localhost:8000/v1.",
                option="upstream",
                value=url,
            )
        self._silence = silence
        # an HTTP proxy from the environment cannot reach ports of this machine
        self._trust_env = not is_loopback(self._base.host)
        self._client = httpx2.AsyncClient(
            trust_env=self._trust_env,
            timeout=httpx2.Timeout(silence, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
        )

    @property
    def readable_encodings(self) -> frozenset[str]:
        """The compressions that can be undone here, as Accept-Encoding names them."""
        codings = self._client.headers["accept-encoding"].split(",")
        return frozenset({"identity", *(coding.strip().lower() for coding in codings)})

    @property
    def name(self) -> str:
        """The base URL without credentials."""
        return str(self._base.copy_with(userinfo=b"", query=None))

    def check(self) -> None:
        """Raises an `Unreachable` if the server gives no answer; any answer is good enough."""
        try:
            httpx2.get(
                self._url("/v1/models", b""), timeout=_CONNECT_SECONDS, trust_env=self._trust_env
            )
        except httpx2.TransportError as error:
            raise Unreachable(
                f"Cannot reach {self.name} ({_reason(error)}); check --upstream, and that the"
                " server is running."
            ) from None

    def request(
        self,
        scope: Scope,
        headers: list[tuple[bytes, bytes]],
        content: bytes | AsyncIterator[bytes] | None,
    ) -> httpx2.Request:
        """Builds the upstream request for an incoming one.

        Raises:
            Refusal: the path cannot be forwarded.
        """
        path = scope.get("raw_path") or quote(scope["path"]).encode()
        try:
            url = self._url(path.decode("latin-1"), scope["query_string"])
        except httpx2.InvalidURL:
            raise Refusal(
                "The path cannot be forwarded: it has to begin with a slash, and to have at most"
                " 65,536 characters together with the query."
            ) from None
        return httpx2.Request(scope["method"], url, headers=headers, content=content)

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request, and returns the response before its body is read."""
        response = await self._client.send(request, stream=True, auth=None)
        if not 200 <= response.status_code < 600:
            await response.aclose()
            raise httpx2.RemoteProtocolError(f"the status {response.status_code}")
        return response

    async def aclose(self) -> None:
        """Closes the connections to the server."""
        await self._client.aclose()

    def failure_of(self, error: httpx2.TransportError) -> UpstreamFailure:
        """Explains an error because of which the server gave no answer."""
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            reason = _reason(error)
            message = f"Cannot reach {self.name} ({reason}); check that the server is running."
            return UpstreamFailure("upstream_unreachable", "cannot be reached", message)
        if isinstance(error, httpx2.TimeoutException):
            message = (
                f"{self.name} was silent for {self._silence:g} s; try again, or give the proxy a"
                " longer --timeout."
            )
            log_text = "silent for longer than --timeout"
            return UpstreamFailure("upstream_timeout", log_text, message, status=504)
        if _is_closed_connection(error):
            message = f"{self.name} closed the connection before it answered; try again."
            return UpstreamFailure("upstream_closed", "closed the connection", message)
        message = (
            f"{self.name} gave an answer that is not HTTP ({error}); check the scheme, the host and"
            " the port of --upstream."
        )
        return UpstreamFailure("upstream_malformed", "gave an answer that is not HTTP", message)

    def _url(self, path: str, query: bytes) -> httpx2.URL:
        """Returns the server's URL for a path of the proxy; what is escaped stays so."""
        base, _, base_query = self._base.raw_path.partition(b"?")
        base = base.rstrip(b"/")
        raw_path = path.encode("latin-1")
        if base and (raw_path == _API or raw_path.startswith(_API + b"/")):
            raw_path = base + raw_path.removeprefix(_API)
        queries = b"&".join(filter(None, (base_query, query)))
        if queries:
            raw_path += b"?" + queries
        return self._base.copy_with(raw_path=raw_path)


def _is_closed_connection(error: BaseException) -> bool:
    """Whether a connection ended, rather than that something other than HTTP came over it.

    httpx has one type of error for both, so that only its message tells them apart.
    """
    if not isinstance(error, httpx2.RemoteProtocolError):
        return True
    return any(word in str(error) for word in ("disconnected", "closed connection"))


def _reason(error: BaseException) -> str:
    """Returns the message of the first cause, such as "Connection refused"."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
