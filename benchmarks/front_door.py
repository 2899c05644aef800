"""The examples of the quickstart and of the pages on logs and serving: the output of three
commands, and pictures of the page, the playground and the terminal.

A bot is measured on SmolLM2 (`make real-models`), the dialogs of that run are scored as logs, and a
steering server answers a request, with the fix and without. Pictures need chromium and its driver.

    python benchmarks/front_door.py --out benchmarks/results/front_door.json
"""

from __future__ import annotations

import argparse
import functools
import html
import json
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from stamp import ROOT, measured_on

import holdfast

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

FIX = "split-softmax:exponent=0.7,heads=20-29.0-8"
MEASURE = (
    "holdfast drift --model smollm2 --suite luna --user-turns everyday"
    " --conversations 24 --temperature 1 --max-new-tokens 60 --out runs/luna"
)
LOGS = "holdfast logs runs/luna --suite luna --out runs/luna-logs"
SERVE = f"holdfast serve --model smollm2 --default-method {FIX}"
URL = "http://127.0.0.1:8000"

# The request to the server: a question, which we picked, that only the model with the fix answers
# as its system prompt says.
PROMPT = "You are a waiter at Chez Marie. The dish of the day is onion soup."
QUESTION = "What is the dish of the day?"
DISH = "onion soup"
REQUEST = {
    "model": "smollm2",
    "messages": [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": QUESTION},
    ],
    "temperature": 0,
    "max_tokens": 40,
}
UNSTEERED = {"steering": "none"}  # the field that leaves the fix out

# The picture of the playground: one dialog, at the first seed at which only the column with the fix
# names the dish.
USER_MESSAGES = [
    "We want to build a tree house for the children.",
    "There is an old apple tree in the garden with three strong branches.",
    "My father built one for us when we were small, and it lasted twenty winters.",
    "What kind of wood is best for something that stands outside?",
    "We were thinking of a rope ladder, and perhaps a bucket on a string.",
    "I cannot wait to see their faces when it is finished.",
    QUESTION,
]
SEEDS = range(20)
SAMPLING = {"temperature": 0.7, "max tokens": 50}  # by the labels of the playground's inputs
SET_SAMPLING = """
for (const label of document.querySelectorAll("#columns label"))
  for (const [name, value] of Object.entries(arguments[0]))
    if (label.textContent.trim() === name) {
      const input = label.querySelector("input");
      input.value = value;
      input.dispatchEvent(new Event("input"));
    }"""

# The pictures
WIDTH = 1100  # pixels
HEIGHTS = {"page": 1560, "terminal": 930, "playground": 1040}
MAX_BYTES = 300_000
TERMINAL_COLUMNS = 120
TERMINAL = """<body style="margin:0;background:#14181f;color:#d7dce2">
<pre style="margin:18px 22px;white-space:pre-wrap;font:14px/1.45 monospace">{text}</pre>"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/front_door.json")
    out = parser.parse_args().out
    stamp = measured_on(holdfast.load("smollm2"))
    shutil.rmtree(ROOT / "runs" / "luna-logs", ignore_errors=True)
    measured = printed_by(MEASURE)
    scored = printed_by(LOGS)
    with serving():
        steered = complete(REQUEST)
        unsteered = complete(REQUEST | UNSTEERED)
        names_dish = take_pictures(out.with_suffix(""), measured)
    record = {
        "benchmark": "front_door",
        "measured_on": stamp,
        "measure": {"command": MEASURE, "printed": measured},
        "logs": {"command": LOGS, "printed": scored},
        "serve": {
            "command": SERVE,
            "request": REQUEST,
            "reply": steered["choices"][0]["message"]["content"],
            "holdfast": steered["holdfast"],
            "unsteered": UNSTEERED,
            "reply_unsteered": unsteered["choices"][0]["message"]["content"],
        },
        "playground": {
            "system_prompt": PROMPT,
            "user": USER_MESSAGES,
            "seed": len(names_dish) - 1,
            "kept": names_dish,
        },
        "pictures": sorted(path.name for path in out.with_suffix("").glob("*.png")),
    }
    out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def printed_by(command: str) -> list[str]:
    """The lines that a command writes to its standard output."""
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.replace(f"{ROOT}/", "").rstrip().split("\n")


@contextmanager
def serving() -> Iterator[None]:
    """Runs the server of `SERVE`; enters once it answers."""
    process = subprocess.Popen([sys.executable, "-m", *shlex.split(SERVE)], cwd=ROOT)
    try:
        for _ in range(300):
            try:
                if httpx2.get(f"{URL}/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                time.sleep(1)
        else:
            raise SystemExit(f"{SERVE} did not answer within five minutes.")
        yield
    finally:
        process.terminate()
        process.wait()


def complete(body: dict) -> dict:
    """The server's answer to a chat."""
    return httpx2.post(f"{URL}/v1/chat/completions", json=body, timeout=300).json()


def take_pictures(folder: Path, printed: list[str]) -> list[list[bool]]:
    """Takes pictures of the run's page, the terminal and the playground.

    Args:
        printed: the lines that the measurement printed.

    Returns:
        By seed from 0, whether each column of the playground names the dish.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        browser.get((ROOT / "runs" / "luna" / "report.html").as_uri())
        save_picture(browser, folder, "page")
        browser.get(write_terminal_page(printed).as_uri())
        save_picture(browser, folder, "terminal")
        names_dish = []
        for seed in SEEDS:
            replies = hold_dialog(browser, seed)
            names_dish.append([DISH in reply.lower() for reply in replies])
            if names_dish[-1] == [False, True]:
                save_picture(browser, folder, "playground")
                return names_dish
    raise SystemExit(f"At no seed of {SEEDS} does only the column with the fix keep the prompt.")


@contextmanager
def open_browser() -> Iterator[WebDriver]:
    """Opens chromium without a window; closes it in the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from browsing import BROWSER, DRIVER, FLAGS

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--window-size={WIDTH},{HEIGHTS['page']}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield browser
    finally:
        browser.quit()


def write_terminal_page(printed: list[str]) -> Path:
    """Writes a page that looks like the terminal after the measurement."""
    fill = functools.partial(textwrap.fill, width=TERMINAL_COLUMNS, break_on_hyphens=False)
    lines = [fill(f"$ {MEASURE}", subsequent_indent="    ")]
    lines += [fill(line) if len(line) > TERMINAL_COLUMNS else line for line in printed]
    page = ROOT / "runs" / "luna-terminal.html"
    page.write_text(TERMINAL.format(text=html.escape("\n".join(lines))), encoding="utf-8")
    return page


def hold_dialog(browser: WebDriver, seed: int) -> list[str]:
    """Holds the dialog in the playground; returns the last reply of each column."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(URL)
    system, draft, send, stop = (
        browser.find_element(By.CSS_SELECTOR, f"#{name}")
        for name in ("system", "draft", "send", "stop")
    )
    WebDriverWait(browser, 60).until(lambda _: send.is_enabled())
    system.clear()
    system.send_keys(PROMPT)
    browser.execute_script(SET_SAMPLING, {"seed": seed, **SAMPLING})
    for text in USER_MESSAGES:
        draft.send_keys(text)
        send.click()
        for shown in (True, False):  # the button to stop, while a column answers
            WebDriverWait(browser, 300).until(lambda _, shown=shown: stop.is_displayed() == shown)
    texts = browser.find_elements(By.CSS_SELECTOR, "#turns .reply .text")
    return [reply.text for reply in texts[-2:]]


def save_picture(browser: WebDriver, folder: Path, name: str) -> None:
    """Takes a picture of the page that the browser shows, one of `HEIGHTS`."""
    browser.set_window_size(WIDTH, HEIGHTS[name])
    time.sleep(1)  # until the page has its new size
    path = folder / f"{name}.png"
    browser.save_screenshot(str(path))
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, of at most {MAX_BYTES}.")


if __name__ == "__main__":
    main()
