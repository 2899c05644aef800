"""The proxy as a Starlette application, which answers a few addresses and forwards all others.

/metrics             metrics for Prometheus
/holdfast            the live page, whose files are below /holdfast/
/holdfast/live.json  the numbers that the page shows
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import PurePath
from typing import Any

import uvicorn
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.proxy.forwarding import Forwarding
from holdfast.proxy.proxy_metrics import ProxyMetrics
from holdfast.proxy.suite_middleware import SuiteMiddleware
from holdfast.proxy.suite_rules import which_are_scored
from holdfast.proxy.tally import LAST_TURN, Tally
from holdfast.serve.access import SECURITY_HEADERS, AccessRules
from holdfast.serve.playground import MEDIA_TYPES
from holdfast.serve.refusals import Refusal
from holdfast.serve.wire import AsciiJsonResponse, send_json

PAGE = "/holdfast"
_SHARED_FILES = ("colours.css", "dom.js", "icon.svg")  # the playground has them too


@dataclass(frozen=True)
class PageTitle:
    """The head of the page: the server, the fix and the suite."""

    upstream: str
    method: str
    suite: str


def proxy_app(
    forwarding: Forwarding,
    metrics: ProxyMetrics,
    middleware: SuiteMiddleware,
    tally: Tally,
    title: PageTitle,
    hosts: tuple[str, ...] = (),
) -> Starlette:
    """Builds the proxy's ASGI application.

    Args:
        forwarding: answers all requests that the proxy does not answer itself.
        metrics: shown at `/metrics`.
        middleware: has the rules that the page names, including those that are not scored.
        tally: has the counts that the page shows.
        title: what the page says about the proxy.
        hosts: the host names that the proxy answers under; () for any.
    """
    metrics.add_open_requests(lambda: forwarding.open)

    async def show_metrics(request: Request) -> Response:
        return Response(metrics.exposition(), 200, SECURITY_HEADERS, CONTENT_TYPE_LATEST)

    async def show_numbers(request: Request) -> Response:
        numbers = {
            "title": asdict(title),
            "open": forwarding.open,
            **_live_numbers(tally, middleware),
        }
        return AsciiJsonResponse(numbers, headers=SECURITY_HEADERS)

    @asynccontextmanager
    async def close_at_shutdown(app: Starlette) -> AsyncIterator[None]:
        yield
        await forwarding.close_upstream()

    # a path that ends with a slash has no route of its own, and would be forwarded
    redirect = RedirectResponse(f"..{PAGE}", headers=SECURITY_HEADERS)
    app = Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route(f"{PAGE}/live.json", show_numbers),
            Route(f"{PAGE}/", redirect, methods=["GET"]),
            *(Route(path, file, methods=["GET"]) for path, file in _page_files().items()),
            Mount("", forwarding),
        ],
        middleware=[
            Middleware(
                _HostCheck,
                rules=AccessRules(hosts=hosts, to_open="give --host another address"),
                metrics=metrics,
            )
        ],
        lifespan=close_at_shutdown,
    )
    app.router.default = forwarding  # for paths that no route matches, such as "*"
    return app


class _HostCheck:
    """Refuses requests under other host names than the proxy's, as the page of another site could
    send them by DNS rebinding.
    """

    def __init__(self, app: ASGIApp, rules: AccessRules, metrics: ProxyMetrics):
        self._app = app
        self._rules = rules
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] == "http":
                self._rules.check(scope)
        except Refusal as refusal:
            self._metrics.note_answer("other", refusal.status)
            headers = {**SECURITY_HEADERS, **(refusal.headers or {})}
            return await send_json(send, refusal.body(), refusal.status, headers)
        await self._app(scope, receive, send)


def _live_numbers(tally: Tally, middleware: SuiteMiddleware) -> dict[str, Any]:
    """Returns the counts as `live.js` reads them; `TallyCounts` explains them."""
    counts = tally.counts()
    rules = {(rule.case, rule.rule): rule for rule in middleware.rules}
    suite_order = list(rules)
    rows = sorted(counts.rules, key=lambda row: suite_order.index((row.cell.case, row.cell.rule)))
    return {
        "last_turn": LAST_TURN,  # the turns after this one are counted together
        "requests": {outcome.value: count for outcome, count in counts.requests.items()},
        "unscored": {reason.value: count for reason, count in counts.unscored.items()},
        "reminders": counts.reminders,
        "added_tokens": counts.added_tokens,
        "left_out": counts.left_out,
        "retries": counts.retries,
        "failed_retries": counts.failed_retries,
        "unchecked": counts.unchecked,
        "failed_measures": counts.failed.total(),
        "rules": [
            {
                **asdict(row.cell),
                "text": rules[row.cell.case, row.cell.rule].text,
                "kept": row.kept,
                "scored": row.scored,
            }
            for row in rows
        ],
        "suite_rules": len(rules),
        "scored_rules": sum(rule.not_scored is None for rule in rules.values()),
        "which_are_scored": which_are_scored(middleware.rules),
    }


def _page_files() -> dict[str, Response]:
    """Returns the files of the page, by their paths."""
    package = files("holdfast")
    shared = [package / "serve" / "page" / name for name in _SHARED_FILES]
    page = {}
    for entry in [*(package / "proxy" / "live").iterdir(), *shared]:
        path = PAGE if entry.name == "index.html" else f"{PAGE}/{entry.name}"
        media_type = MEDIA_TYPES[PurePath(entry.name).suffix]
        page[path] = Response(entry.read_bytes(), 200, SECURITY_HEADERS, media_type)
    return page


def uvicorn_config(app: Starlette) -> uvicorn.Config:
    """Returns the configuration of a server that adds nothing to what it forwards."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",  # an answer that breaks off upstream raises here, which is no error
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        ws="none",
    )
