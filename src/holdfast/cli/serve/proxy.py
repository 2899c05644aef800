"""`holdfast proxy`: edits and scores the chats that pass between a client and its server."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

from holdfast.cli.serve.served_url import local_names, url_of
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command, Options, file_to_write
from holdfast.cli.shared.interrupts import exiting_on_sigterm
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.notes import note
from holdfast.drift.suites import load_suite
from holdfast.extras import check_extra
from holdfast.files import short_path
from holdfast.methods import parse, spec_of
from holdfast.validation.ranges import Range, whole_number

EXAMPLES = """examples:
  holdfast proxy --upstream http://localhost:8000/v1 --suite bot.yaml
  holdfast proxy --upstream https://api.openai.com/v1 --suite bot.yaml --method check-and-retry:n=2
  holdfast proxy --upstream https://api.openai.com/v1 --suite bot.yaml \\
    --method reminder:every=1,text=rules,when=broken"""

DESCRIPTION = (
    "Forwards requests to an OpenAI-compatible server (Chat Completions and Responses), edits the"
    " messages of chats with a method, and scores the replies by a suite's rules (see `holdfast"
    " docs proxy`).\nEverything else passes through unchanged. After the first SIGTERM or Ctrl-C,"
    " running requests finish; the second ends them."
)

_PACKAGES = ("starlette", "uvicorn", "prometheus_client")
_SWITCH_INTERVAL = 0.0005  # seconds that a thread may score a reply before the streams go on


class ProxyArguments(Options):
    upstream: Annotated[str, Arg("URL")]
    """the base URL of the server, such as http://localhost:8000/v1"""
    suite: Annotated[str, Arg("FILE.yaml|NAME")]
    """the rules: those of a suite with one case apply to all chats; of several cases, the one with
    the chat's system prompt applies"""
    method: options.Spec = "none"
    """how chats are changed: reminder:every=4, repetition:probability=0.5, check-and-retry, ..."""
    host: str = "127.0.0.1"
    """address to listen on"""
    port: int = 8100
    """0 picks a free port"""
    timeout: Annotated[float, Arg("SECONDS")] = 600.0
    """seconds to wait for the server while it is silent"""
    log: Annotated[Path | None, Arg("FILE.jsonl", type=file_to_write)] = None
    """append each scored chat, with its texts, to this file, for `holdfast logs` (default: no text
    is kept)"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""


def run(arguments: ProxyArguments) -> None:
    check_extra("proxy", "serve", _PACKAGES)
    from holdfast.proxy.suite_middleware import SuiteMiddleware
    from holdfast.proxy.suite_rules import which_are_scored
    from holdfast.proxy.upstream import Upstream
    from holdfast.serve import server

    whole_number("proxy", "port", arguments.port, 0, 65_535)
    methods = parse(arguments.method)
    timeout = Range(0, above_low=True).check("proxy", "timeout", arguments.timeout)
    upstream = Upstream(arguments.upstream, timeout)
    suite = load_suite(arguments.suite, allow_code=arguments.allow_code, probed=False)
    middleware = SuiteMiddleware(suite, methods)
    with server.bind(arguments.host, arguments.port) as bound:
        with exiting_on_sigterm():
            upstream.check()
        middleware.load_lexicons()
        if middleware.unscored_rules:
            note(which_are_scored(middleware.rules))
        # these take a while to import, so everything else is checked before
        from holdfast.proxy.forwarding import Forwarding
        from holdfast.proxy.proxy_app import PageTitle, proxy_app, uvicorn_config
        from holdfast.proxy.proxy_metrics import ProxyMetrics
        from holdfast.proxy.relay import ChatRelay
        from holdfast.proxy.tally import Tally

        tally = Tally()
        metrics = ProxyMetrics(tally, middleware.rules)
        forwarding = Forwarding(upstream, ChatRelay(middleware, tally, arguments.log), metrics)
        hosts = local_names(arguments.host) if server.is_loopback(arguments.host) else ()
        title = PageTitle(upstream.name, spec_of(methods), suite.name)
        app = proxy_app(forwarding, metrics, middleware, tally, title, hosts)
        server.listen(bound)
        _announce(url_of(arguments.host, bound), upstream.name, arguments.log)
        sys.setswitchinterval(_SWITCH_INTERVAL)
        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        server.run(uvicorn_config(app), forwarding, bound, lambda line: print(line, flush=True))


def _announce(url: str, upstream: str, log: Path | None) -> None:
    """Prints the addresses of the proxy and of its page, and the file of its log."""
    from holdfast.proxy.proxy_app import PAGE

    page = f"{url}{PAGE}"
    print(f"Holdfast forwards {url}/v1 to {upstream}; page: {page}", flush=True)
    if log is not None:
        note(f"each scored chat is appended to {short_path(log)}.")
    write_document({"url": f"{url}/v1", "upstream": upstream, "page": page})


COMMAND = Command(
    "proxy",
    run,
    ProxyArguments,
    DESCRIPTION,
    EXAMPLES,
)
