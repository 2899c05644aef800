"""The proxy's application: the addresses that it answers itself; it forwards all others.

/metrics             metrics for Prometheus
/holdfast            the live page, whose files are below /holdfast/
/holdfast/live.json  the numbers that the page shows
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import PurePath

import uvicorn
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from holdfast.proxy.forwarding import Forwarding
from holdfast.proxy.proxy_metrics import ProxyMetrics
from holdfast.proxy.suite_middleware import SuiteMiddleware, which_are_scored
from holdfast.proxy.tally import LAST_TURN, RuleCount, Tally
from holdfast.serve.access import SECURITY_HEADERS, AccessRules
from holdfast.serve.playground import MEDIA_TYPES
from holdfast.serve.refusals import Refusal
from holdfast.serve.wire import Json, send_json

PAGE = "/holdfast"
_SHARED_FILES = ("colours.css", "dom.js", "icon.svg")  # the playground has them too


@dataclass(frozen=True)
class PageTitle:
    """The line at the head of the page."""

    upstream: str
    method: str
    suite: str


@dataclass(frozen=True)
class LiveRule:
    """A rule at a turn, and how many of the scored replies kept it."""

    case: str
    rule: str
    text: str
    turn: int
    kept: int
    scored: int


@dataclass(frozen=True)
class LiveNumbers:
    """The numbers that `live.js` shows; `Counts` explains them."""

    title: PageTitle
    last_turn: int  # the turns after this one are counted together
    open: int  # requests that have not ended
    requests: dict[str, int]
    unscored: dict[str, int]
    reminders: int
    added_tokens: int
    left_out: int
    retries: int
    rules: list[LiveRule]
    suite_rules: int  # the number of rules in all cases
    scored_rules: int  # how many of these replies can be scored by
    which_are_scored: str  # sentences that also name the others


class ProxyApp:
    """The proxy's ASGI application.

    Args:
        forwarding: answers all requests that the proxy does not answer itself.
        metrics: shown at `/metrics`.
        middleware: has the rules that the page names, including those that are not scored.
        tally: has the counts that the page shows.
        title: what the page says about the proxy.
        hosts: the host names that the proxy answers under; () for any.
    """

    def __init__(
        self,
        forwarding: Forwarding,
        metrics: ProxyMetrics,
        middleware: SuiteMiddleware,
        tally: Tally,
        title: PageTitle,
        hosts: tuple[str, ...] = (),
    ):
        self._forwarding = forwarding
        self._metrics = metrics
        self._tally = tally
        self._title = title
        self._access = AccessRules(hosts=hosts, to_open="give --host another address")
        self._rules = middleware.rules
        self._texts = {(rule.case, rule.rule): rule.text for rule in self._rules}
        self._order = {key: number for number, key in enumerate(self._texts)}
        self._page = _page_files()
        metrics.note_open(lambda: forwarding.open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live_until_shutdown(receive, send)
        if scope["type"] != "http":
            return  # WebSockets, which `uvicorn_config` disables
        try:
            self._access.check(scope)
        except Refusal as refusal:
            self._metrics.note_answer("other", refusal.status)
            headers = {**SECURITY_HEADERS, **(refusal.headers or {})}
            return await send_json(send, refusal.body(), refusal.status, headers)
        reads = scope["method"] in ("GET", "HEAD")
        response = self._local_response(scope["path"]) if reads else None
        if response is None:
            return await self._forwarding(scope, receive, send)
        await response(scope, receive, send)

    async def _live_until_shutdown(self, receive: Receive, send: Send) -> None:
        """Answers ASGI's lifespan messages, and closes the connections upstream at shutdown."""
        await receive()  # lifespan.startup
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
        await self._forwarding.close_upstream()
        await send({"type": "lifespan.shutdown.complete"})

    def _local_response(self, path: str) -> Response | None:
        """Returns the proxy's own answer; None if the request is to be forwarded."""
        if path == "/metrics":
            return Response(self._metrics.exposition(), 200, SECURITY_HEADERS, CONTENT_TYPE_LATEST)
        if path == f"{PAGE}/live.json":
            return Json(asdict(self._live()), headers=SECURITY_HEADERS)
        if path == f"{PAGE}/":  # from here, the page's links would lead elsewhere
            return RedirectResponse(f"..{PAGE}", headers=SECURITY_HEADERS)
        return self._page.get(path)

    def _live(self) -> LiveNumbers:
        """Collects the numbers for the page."""
        counts = self._tally.counts()
        rules = [
            LiveRule(
                case=row.cell.case,
                rule=row.cell.rule,
                text=self._texts.get((row.cell.case, row.cell.rule), ""),
                turn=row.cell.turn,
                kept=row.kept,
                scored=row.scored,
            )
            for row in sorted(counts.rules, key=self._place_in_suite)
        ]
        return LiveNumbers(
            title=self._title,
            last_turn=LAST_TURN,
            open=self._forwarding.open,
            requests={outcome.value: n for outcome, n in counts.requests.items()},
            unscored={reason.value: n for reason, n in counts.unscored.items()},
            reminders=counts.reminders,
            added_tokens=counts.added_tokens,
            left_out=counts.left_out,
            retries=counts.retries,
            rules=rules,
            suite_rules=len(self._rules),
            scored_rules=sum(rule.not_scored is None for rule in self._rules),
            which_are_scored=which_are_scored(self._rules),
        )

    def _place_in_suite(self, row: RuleCount) -> int:
        """Returns where the rule of a row is in the suite."""
        return self._order[row.cell.case, row.cell.rule]


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


def uvicorn_config(app: ProxyApp) -> uvicorn.Config:
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
