"""A real browser for page tests: driven by keyboard, at desktop and phone widths."""

import base64
import json
import os
import shutil
import time

import pytest

BROWSERS = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
BROWSER = next(filter(None, BROWSERS), None)
DRIVER = shutil.which("chromedriver")
NO_BROWSER = "chromium and chromedriver are not installed"
needs_browser = pytest.mark.skipif(not (BROWSER and DRIVER), reason=NO_BROWSER)

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-dev-shm-usage --hide-scrollbars"
).split()
PATIENCE = 20.0  # seconds; long enough for busy machines


def open_browser(tmp_path_factory):
    """Yields a browser; meant to become a module-scoped fixture."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    if not (BROWSER and DRIVER):
        pytest.skip(NO_BROWSER)
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def set_screen(browser, width, dark=False):
    """Sets the window's width and the preferred colour scheme."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def js(browser, expression):
    """Evaluates an expression on the page."""
    return browser.execute_script(f"return {expression}")


def text_of(browser, selector):
    return js(browser, f"document.querySelector({json.dumps(selector)}).textContent")


def number_of(browser, selector):
    return js(browser, f"document.querySelectorAll({json.dumps(selector)}).length")


def click(browser, selector):
    browser.execute_script(f"document.querySelector({json.dumps(selector)}).click()")


def focus(browser, selector):
    browser.execute_script(f"document.querySelector({json.dumps(selector)}).focus()")


def open_details(browser):
    """Opens every `<details>` element."""
    browser.execute_script("document.querySelectorAll('details').forEach((d) => d.open = true)")


def keys(browser, *pressed):
    """Presses keys in the focused element, as a reader would."""
    from selenium.webdriver import ActionChains

    for key in pressed:
        ActionChains(browser).send_keys(key).perform()


def wait(browser, script):
    """Waits until the value of a script is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = browser.execute_script(f"return {script}")
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"never true: {script}")


def requests(browser):
    """Every URL the page has requested since the log was last read."""
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    sent_events = [event for event in events if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in sent_events]


def look(browser, name):
    """Saves a screenshot if HOLDFAST_SCREENSHOTS names a folder."""
    folder = os.environ.get("HOLDFAST_SCREENSHOTS")
    if folder:
        height = "Math.min(9000, document.documentElement.scrollHeight)"
        size = js(browser, f"[innerWidth, {height}]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        options = {"captureBeyondViewport": True, "clip": clip}
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", options)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{name}.png"), "wb") as file:
            file.write(base64.b64decode(shot["data"]))


TEXT_COLOURS = """
const seen = [];
const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
for (const node of document.querySelectorAll("h1, h2, h3, p, li, th, td, summary, label, code, .t, .meta, .range, .unclear, button, dd, dt, .chart text")) {
  if (!node.checkVisibility() || !node.textContent.trim()) continue;
  let behind = node;
  while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const style = getComputedStyle(node), front = node.closest("svg") ? style.fill : style.color;
  const [a, b] = [light(numbers(front)), light(numbers(getComputedStyle(behind || document.body).backgroundColor))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) seen.push(`${node.tagName}.${node.className.baseVal ?? node.className} ${contrast.toFixed(2)} ${node.textContent.slice(0, 30)}`);
}
return [...new Set(seen)].slice(0, 10);
"""
