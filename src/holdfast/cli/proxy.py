"""`holdfast proxy`: between a chat's client and its server."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

from holdfast.cli import options
from holdfast.cli.command import Arg, Command, Options
from holdfast.cli.json_output import write_document
from holdfast.cli.progress import exiting_on_sigterm, note
from holdfast.drift.suites import load_suite
from holdfast.errors import UsageError
from holdfast.extras import check_extra
from holdfast.methods import parse, spec_of
from holdfast.validation.ranges import Range

EXAMPLES = """examples:
  holdfast proxy --upstream http://localhost:8000/v1 --suite bot.yaml
  holdfast proxy --upstream https://api.openai.com/v1 --suite bot.yaml --method check-and-retry:n=2
  holdfast proxy --upstream https://api.openai.com/v1 --suite bot.yaml \\
    --method reminder:every=1,text=rules,when=broken"""

DESCRIPTION = (
    "Forwards requests to an OpenAI-compatible server (Chat Completions and Responses), edits the"
    " messages of chats by a method, and scores the replies by a suite's rules (see `holdfast docs"
    " proxy`).\nEverything else passes through as it is. After the first SIGTERM or Ctrl-C, running"
    " requests finish; the second ends them."
)

_NEEDS = ("starlette", "uvicorn", "prometheus_client")
_SWITCH = 0.0005  # seconds that a thread which scores a reply may keep the streams waiting


class ProxyArguments(Options):
    upstream: Annotated[str, Arg("URL")]
    """the base URL of the server, such as http://localhost:8000/v1"""
    suite: Annotated[str, Arg("FILE.yaml|NAME")]
    """the rules: a suite with one case is for all chats; with several, the one whose system prompt
    a chat has"""
    method: options.Spec = "none"
    """what is done to chats: reminder:every=4, repetition:probability=0.5, check-and-retry, ..."""
    host: str = "127.0.0.1"
    """address to listen on"""
    port: int = 8100
    """0 picks a free port"""
    timeout: Annotated[float, Arg("SECONDS")] = 600.0
    """seconds to wait for the server while it is silent"""
    log: Annotated[Path | None, Arg("FILE.jsonl")] = None
    """append each scored chat, with its texts, for `holdfast logs` (default: no text is kept)"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""


def run(arguments: ProxyArguments) -> None:
    check_extra("serve", _NEEDS)
    from holdfast.proxy.suite_middleware import SuiteMiddleware, which_are_scored
    from holdfast.proxy.upstream import Upstream
    from holdfast.serve import server

    if not 0 <= arguments.port < 65_536:
        raise UsageError(
            f"--port takes a number from 0 to 65535, not {arguments.port}.",
            option="port",
            value=arguments.port,
        )
    methods = parse(arguments.method)
    silence = Range(0, above_low=True).check("proxy", "timeout", arguments.timeout)
    upstream = Upstream(arguments.upstream, silence)
    suite = load_suite(arguments.suite, allow_code=arguments.allow_code, probed=False)
    middleware = SuiteMiddleware(suite, methods)
    with server.bind(arguments.host, arguments.port) as bound:
        with exiting_on_sigterm():
            upstream.check()
        if middleware.unscored_rules:
            note(which_are_scored(middleware.rules))
        from holdfast.proxy.forwarding import Forwarding
        from holdfast.proxy.proxy_app import PAGE, PageTitle, ProxyApp, uvicorn_config
        from holdfast.proxy.proxy_metrics import ProxyMetrics
        from holdfast.proxy.relay import ChatRelay
        from holdfast.proxy.tally import Tally

        tally = Tally()
        metrics = ProxyMetrics(tally, middleware.rules)
        forwarding = Forwarding(upstream, ChatRelay(middleware, tally, arguments.log), metrics)
        loopback = server.is_loopback(arguments.host)
        hosts = ("localhost", "127.0.0.1", "::1", arguments.host) if loopback else ()
        title = PageTitle(upstream.name, spec_of(methods), suite.name)
        app = ProxyApp(forwarding, metrics, middleware, tally, title, hosts)
        server.listen(bound)
        host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        url = f"http://{host}:{bound.getsockname()[1]}"
        print(f"Holdfast forwards {url}/v1 to {upstream.name}; page: {url}{PAGE}", flush=True)
        write_document({"url": f"{url}/v1", "upstream": upstream.name, "page": f"{url}{PAGE}"})
        sys.setswitchinterval(_SWITCH)
        logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        server.run(uvicorn_config(app), forwarding, bound, lambda line: print(line, flush=True))


COMMAND = Command(
    "proxy",
    "between a chat's client and its server: add reminders, score replies",
    run,
    ProxyArguments,
    DESCRIPTION,
    EXAMPLES,
)
