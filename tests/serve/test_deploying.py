"""The files of deploy/: their commands parse, their metrics exist, nginx lets tokens through."""

import json
import re
import shlex
import shutil
import socket
import subprocess
import time

import httpx2
import pytest
import yaml
from fake_upstream import wait_until
from paths import ROOT
from prometheus_client.parser import text_string_to_metric_families
from served import FRENCH

from holdfast.cli.main_parser import read_command
from holdfast.methods import parse

DEPLOY = ROOT / "deploy"
DOCUMENT = (ROOT / "docs" / "deploying.md").read_text()


def serve_options(words: list[str]):
    """The arguments of `holdfast serve` in a command, as the CLI parses them."""
    return read_command(words[words.index("serve") :])[1]


def test_the_image_starts_the_server_with_a_key():
    lines = (DEPLOY / "Dockerfile").read_text()
    command = r"^(?:ENTRYPOINT|CMD) (\[.*\])$"
    entry, default = map(json.loads, re.findall(command, lines, re.MULTILINE))
    arguments = serve_options(entry + default)
    assert (arguments.host, arguments.api_key_env) == ("0.0.0.0", "HOLDFAST_KEY")
    assert parse(arguments.default_method)
    files = re.findall(r"^COPY (.*) \S+$", lines, re.MULTILINE)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for name in " ".join(files).split():
        assert (ROOT / name).exists() and f"!{name}" in ignored
    run = next(line for line in DOCUMENT.splitlines() if line.startswith("docker run"))
    assert serve_options([*entry, *run.split(" holdfast ")[1].split()]).model.startswith("Qwen/")


def test_the_unit_starts_the_server_and_waits_as_long_as_a_request_may_take():
    lines = (DEPLOY / "holdfast.service").read_text().splitlines()
    unit = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    arguments = serve_options(shlex.split(unit["ExecStart"]))
    assert arguments.api_key_env == "HOLDFAST_KEY"
    assert f":{arguments.port}/ready" in unit["ExecStartPost"]
    assert arguments.timeout < int(unit["TimeoutStopSec"]) < arguments.timeout + 60


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "holdfast.service").read_text()
    text = text.replace("/opt/holdfast/bin/holdfast", "/bin/true")
    (tmp_path / "holdfast.service").write_text(text.replace("/usr/bin/curl", "/bin/true"))
    words = ["systemd-analyze", "verify", str(tmp_path / "holdfast.service")]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


def test_alerts_watch_metrics_that_the_server_has(url):
    body = {"messages": FRENCH, "trace": True, "max_tokens": 4}
    httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=60).raise_for_status()
    # a request is counted once its answer has been sent
    wait_until(lambda: "holdfast_requests_total{" in httpx2.get(f"{url}/metrics").text)
    families = text_string_to_metric_families(httpx2.get(f"{url}/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    labels = {sample.name: set(sample.labels) for sample in samples}
    alerts = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
    rules = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    watched = {name for rule in rules for name in re.findall(r"\bholdfast_\w+", rule)}
    assert watched and watched <= labels.keys()
    for name, label in re.findall(r"\b(holdfast_\w+)\{(\w+)=", " ".join(rules)):
        assert label in labels[name]
    assert "round" in labels["holdfast_prompt_mass_sum"]
    job = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]
    assert f'job="{job["job_name"]}"' in " ".join(rules)


@pytest.mark.skipif(not shutil.which("nginx"), reason="there is no nginx")
def test_nginx_passes_tokens_on_one_by_one(url, tmp_path):
    """Uses the shipped file, but without TLS and on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = (DEPLOY / "nginx.conf").read_text()
    site = re.sub(r"^ *ssl_.*\n", "", site, flags=re.MULTILINE)
    site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    site = site.replace("127.0.0.1:8000", url.removeprefix("http://"))
    for place in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        site += f"{place}_temp_path {tmp_path}/{place};\n"
    settings = f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;\n"
    http = f"worker_processes 1;\nevents {{}}\nhttp {{ access_log off;\n{site} }}\n"
    (tmp_path / "nginx.conf").write_text(settings + http)
    nginx = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf")])
    try:
        near = f"http://127.0.0.1:{port}"
        _until_it_answers(f"{near}/health")
        body = {"messages": FRENCH, "stream": True, "max_tokens": 200, "seed": 1}
        arrived, text = [], b""
        with httpx2.stream("POST", f"{near}/v1/chat/completions", json=body, timeout=60) as reply:
            for part in reply.iter_raw():
                arrived.append(time.monotonic())
                text += part
        events = text.decode().strip().split("\n\n")
        assert events[-1] == "data: [DONE]" and len(events) > 5
        assert len(arrived) > len(events) / 2
        assert httpx2.get(f"{near}/metrics").status_code == 200
    finally:
        nginx.terminate()
        assert nginx.wait(20) == 0


def _until_it_answers(address: str) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if httpx2.get(address).status_code == 200:
                return
        except httpx2.ConnectError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{address} does not answer")
