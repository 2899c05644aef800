"""The playground as a user sees it, in a real browser: against a real server and, for errors and
slow replies, against a server that answers at once.
"""

import json
import re
import urllib.request

import pytest
from browsing import (
    TEXT_COLOURS,
    click,
    focus,
    js,
    keys,
    look,
    needs_browser,
    number_of,
    open_browser,
    open_details,
    requests,
    set_screen,
    text_of,
    wait,
)
from playground_server import KEY, OUT_OF_MEMORY, quick_server
from served import default_model, served

import holdfast
from holdfast.cli.serve.serve import playground_prompts
from holdfast.models.requests import Request
from holdfast.serve.limits import RequestLimits
from holdfast.serve.playground import page_files

browser = pytest.fixture(scope="module")(open_browser)
SECRET_PROMPT = "Your secret number is 2959."
SYSTEM_MESSAGE = {"role": "system", "content": SECRET_PROMPT}
QUESTION = "What is your number?"
IS_READY = "!document.querySelector('#send').disabled && !document.querySelector('#send').hidden"


@pytest.fixture(scope="module", name="served")
def served_model():
    """The address of a real server."""
    with served(default_model(), RequestLimits()) as running:
        yield f"{running.url}/"


@pytest.fixture
def instant_server():
    with quick_server() as server:
        yield server


def visit(browser, url, width=1280, dark=False, ready=True):
    set_screen(browser, width, dark)
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(url)
    if ready:
        wait(browser, IS_READY)


def write(browser, name, text):
    box = browser.find_element("id", name)
    box.clear()
    box.send_keys(text)


def send(browser, text):
    """Sends a message, and waits for the replies to it."""
    before = number_of(browser, "#turns .turn")
    write(browser, "draft", text + "\n")
    wait(
        browser, f"document.querySelectorAll('#turns .turn').length === {before + 1} && {IS_READY}"
    )


def replies(browser, part=".text"):
    """A part of every reply, turn by turn."""
    return js(
        browser,
        "[...document.querySelectorAll('#turns .reply')].map((reply) =>"
        f" reply.querySelector('{part}').textContent)",
    )


def fill(browser, selector, value):
    """Sets the value of an input or a select."""
    script = "const node = document.querySelector(arguments[0]); node.value = arguments[1];"
    event = "new Event(node.matches('select') ? 'change' : 'input')"
    browser.execute_script(f"{script} node.dispatchEvent({event})", selector, value)


def press(browser, key, modifier):
    """Presses a key while another is held down."""
    from selenium.webdriver import ActionChains

    ActionChains(browser).key_down(modifier).send_keys(key).key_up(modifier).perform()


def emphasise(browser):
    """Presses Ctrl E, which emphasises the selection."""
    press(browser, "e", modifier="\ue009")


def offline(messages, steering, seed, emphasis=()):
    """The reply that the page's settings give without a server."""
    sampling = holdfast.Sampling(1.0, 0.9, 200)
    request = Request(messages, steering, sampling, seed, trace=True, emphasis=emphasis)
    return default_model().generate_batch([request])[0]


def mass_of(reply):
    """Mean over heads and visible tokens, without the token that ends the reply."""
    return pytest.approx(float(reply.trace.mass[..., : len(reply.token_ids)].mean()), abs=1e-3)


def masses(browser):
    """The mass that the page shows for each reply."""
    return [float(re.match(r"mass ([\d.]+)", line)[1]) for line in replies(browser, ".mass")]


# The files of the page


def test_the_page_consists_of_its_own_files_and_nothing_inline():
    files = page_files()
    assert {"/", "/page/main.js", "/page/layout.css"} <= files.keys()
    texts = {path: file.body.decode() for path, file in files.items()}
    page = texts["/"]
    assert not re.search(r"<style|style=|\son\w+=|javascript:", page)
    assert re.findall(r"<script[^>]*>[^<]+", page) == [], "an inline script"
    for path, text in texts.items():
        foreign = re.findall(r"(?:https?:)?//[\w.]+\.\w+", text)
        assert set(foreign) <= {"http://www.w3.org"}, path
        assert not re.search(r"innerHTML|insertAdjacentHTML|\beval\(|new Function", text), path
    references = re.findall(r'(?:src|href)="(page/[^"]+)"', page)
    inner = (re.findall(r'from "\./([^"]+)"', text) for text in texts.values())
    references += [f"page/{name}" for names in inner for name in names]
    assert references and {f"/{name}" for name in references} <= files.keys()


def test_no_other_file_is_served(served):
    for path in ("page/../serve.py", "page/..%2f..%2fcli%2fserve.py", "page/none.js"):
        with pytest.raises(urllib.error.HTTPError) as excinfo:
            urllib.request.urlopen(served + path)
        assert excinfo.value.code == 404


# Replies in columns


@pytest.mark.slow
@needs_browser
def test_two_columns_answer_the_same_messages_side_by_side(browser, served):
    visit(browser, served)
    write(browser, "system", SECRET_PROMPT)
    histories = {"none": [], "boost:factor=4": []}
    first = []
    for turn, text in enumerate(("Please talk about the sea.", QUESTION)):
        send(browser, text)
        for steering, history in histories.items():
            chat = [SYSTEM_MESSAGE, *history, {"role": "user", "content": text}]
            reply = offline(chat, steering, turn)
            first += [] if turn else [reply]
            history += [chat[-1], {"role": "assistant", "content": reply.text}]
            assert reply.text in replies(browser)
            assert mass_of(reply) in masses(browser)
    last = [history[-1]["content"] for history in histories.values()]
    assert replies(browser)[2:] == last
    # the chart compares replies over as many tokens as the shortest has
    length = min(len(reply.token_ids) for reply in first)
    assert length < max(len(reply.token_ids) for reply in first)
    click(browser, "#chart summary")
    displayed = js(
        browser,
        "[...document.querySelectorAll('#chart tbody tr:first-child td')].map((td) => td.textContent)",
    )
    means = [sum(reply.token_masses[:length]) / length for reply in first]
    assert [float(mass) for mass in displayed[:2]] == pytest.approx(means, abs=1e-3)
    browser.refresh()  # which keeps the dialog
    wait(browser, IS_READY)
    assert replies(browser)[2:] == last
    shades, labels, uniform = js(
        browser,
        "[document.querySelectorAll('.reply .t').length,"
        " [...document.querySelectorAll('#chart .end')].map((text) => text.textContent[0]),"
        " document.querySelector('#chart .uniform').getAttribute('d')]",
    )
    assert shades > 20 and sorted(labels) == ["A", "B", "u"] and uniform.startswith("M")
    look(browser, "playground")
    assert browser.get_log("browser") == []
    assert all(url.startswith((served, "data:", "about:")) for url in requests(browser))


@pytest.mark.slow
@needs_browser
def test_a_third_column_answers_what_was_asked_before_it_was_added(browser, served):
    visit(browser, served)
    write(browser, "system", SECRET_PROMPT)
    send(browser, QUESTION)
    click(browser, "#add-column")
    wait(browser, f"document.querySelectorAll('.reply').length === 3 && {IS_READY}")
    chat = [SYSTEM_MESSAGE, {"role": "user", "content": QUESTION}]
    assert replies(browser)[2] == offline(chat, "split-softmax:exponent=0.5", 0).text
    fill(browser, "[data-column='2'] select", "spotlight")
    assert text_of(browser, '[data-column="2"] .spec') == "spotlight:target=0.3"
    fill(browser, "[data-column='2'] [type=number]", "7")
    write(browser, "draft", "Please talk about the sea.\n")
    assert text_of(browser, "#notice-text").endswith(", not 7.")
    assert number_of(browser, ".turn") == 1
    fill(browser, "[data-column='2'] [type=number]", "0.6")
    fill(browser, "[data-column='2'] [max='4096']", "1")
    send(browser, "Please talk about the sea.")
    assert replies(browser, ".who code")[-1] == "spotlight:target=0.6"
    assert replies(browser, ".facts")[-1].endswith("cut at 1 tokenheads")
    click(browser, '[data-column="0"] .icon')
    assert number_of(browser, ".reply") == 4


@needs_browser
def test_the_page_begins_with_the_servers_default_method_and_prompts(browser, tmp_path):
    file = tmp_path / "our_bot.yaml"
    case = {"system_prompt": "Reply in French.", "probe": "How are you?", "measure": "one_sentence"}
    french = {"id": "french", "category": "language", **case}
    pirate = {**french, "id": "pirate", "system_prompt": "Talk like a pirate."}
    file.write_text(json.dumps({"cases": [french, pirate]}))
    default = holdfast.methods.parse("split-softmax:exponent=0.4")
    prompts = playground_prompts(str(file))
    with served(default_model(), RequestLimits(), default=default, prompts=prompts) as running:
        visit(browser, f"{running.url}/")
        for selector, values in (
            ("'[data-role=method]')].map((s) => s.value)", ["none", "split-softmax"]),
            ("'option[value=seka]')].map((o) => o.value)", []),  # it needs a fitted file
            ("'.spec')].map((s) => s.textContent)", ["none", "split-softmax:exponent=0.4"]),
            ("'#examples button')].map((b) => b.textContent)", ["french", "pirate"]),
        ):
            assert js(browser, f"[...document.querySelectorAll({selector}") == values
        click(browser, "#examples button")
        assert js(browser, "document.querySelector('#system').value") == "Reply in French."
        assert js(browser, "document.querySelector('#draft').value") == "How are you?"
        look(browser, "default-method")


# Traces


@needs_browser
def test_a_reply_is_read_token_by_token_and_head_by_head(browser, served):
    visit(browser, served)
    write(browser, "system", SECRET_PROMPT)
    send(browser, QUESTION)
    click(browser, ".reply .link")
    cells = "[...document.querySelectorAll('.heads td')].map((cell) => cell.textContent)"
    mean = js(browser, cells)
    assert len(mean) == 32
    focus(browser, ".strip")
    keys(browser, "\ue011", "\ue014")  # Home, and the right arrow
    label = js(browser, "document.querySelector('.strip').getAttribute('aria-valuetext')")
    assert label.startswith("token 2 of ") and "mass 0." in label
    assert number_of(browser, ".looked-at") == 1
    assert js(browser, cells) != mean
    keys(browser, "\ue00c")  # Escape
    assert js(browser, cells) == mean


@pytest.mark.slow
@needs_browser
def test_heads_of_a_large_model_are_fetched_on_request(browser, instant_server, monkeypatch):
    instant_server.shape = (40, 40)
    visit(browser, instant_server.url)
    write(browser, "system", SECRET_PROMPT)
    send(browser, "hello")
    assert [body["trace"] for body in instant_server.bodies] == [True, True]
    write(browser, "system", "Another one.")
    fill(browser, "[data-column='1'] [type=number]", "2")
    displayed = (replies(browser), replies(browser, ".mass"))
    click(browser, ".s1 .reply .link")
    wait(browser, f"document.querySelectorAll('.s1 .heads td').length === 1600 && {IS_READY}")
    (steered,) = [body for body in instant_server.bodies[:2] if body["steering"] != "none"]
    assert instant_server.bodies[2] == {**steered, "trace": "heads"}
    monkeypatch.setattr("playground_server.WORDS", [" other"] * 30)  # as rounding may have it
    click(browser, ".s0 .reply .link")
    wait(browser, f"document.querySelectorAll('.s0 .heads td').length === 1600 && {IS_READY}")
    assert ["second sampling" in title for title in replies(browser, "caption")] == [True, False]
    assert (replies(browser), replies(browser, ".mass")) == displayed
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth")


@needs_browser
def test_attenuate_is_not_traced_and_needs_no_system_prompt(browser, instant_server):
    visit(browser, instant_server.url)
    fill(browser, "[data-column='1'] select", "attenuate")
    send(browser, "hello")
    traces = {body["steering"]: body.get("trace") for body in instant_server.bodies}
    assert traces == {"none": None, "attenuate:factor=0.1": None}
    write(browser, "system", SECRET_PROMPT)
    send(browser, "hello")
    traces = {body["steering"]: body.get("trace") for body in instant_server.bodies[2:]}
    assert traces == {"none": "heads", "attenuate:factor=0.1": None}


# Emphasis


@needs_browser
def test_selected_words_are_emphasised_and_released(browser, served):
    visit(browser, served)
    write(browser, "system", SECRET_PROMPT)
    browser.execute_script("document.querySelector('#system').setSelectionRange(22, 26)")
    emphasise(browser)
    chips = "return [...document.querySelectorAll('#emphasised .chip span:first-child')].map((chip) => chip.textContent)"
    assert browser.execute_script(chips) == ["2959"]
    assert text_of(browser, "#system-shadow mark") == "2959"
    # the smile is two UTF-16 units, and one character to the server
    fill(browser, "#draft", "🙂 What is your number?")
    focus(browser, "#draft")
    browser.execute_script("document.querySelector('#draft').setSelectionRange(3, 7)")
    # the button may still offer to release the previous selection
    label = "document.querySelector('#emphasise span').textContent === 'Emphasise this'"
    wait(browser, f"!document.querySelector('#emphasise').hidden && {label}")
    click(browser, "#emphasise")
    assert browser.execute_script(chips) == ["2959", "What"]
    keys(browser, "\ue007")
    wait(browser, f"document.querySelectorAll('.reply').length === 2 && {IS_READY}")
    chat = [SYSTEM_MESSAGE, {"role": "user", "content": "🙂 What is your number?"}]
    for number, steering in enumerate(("none", "boost:factor=4")):
        reply = offline(chat, steering, 0, emphasis=["2959", "What"])
        assert replies(browser)[number] == reply.text
        assert masses(browser)[number] == mass_of(reply)

    browser.execute_script(
        "const text = document.querySelector('.reply .text'); const range = document.createRange();"
        " range.selectNodeContents(text.children[1]); getSelection().removeAllRanges(); getSelection().addRange(range);"
    )
    emphasise(browser)
    assert len(browser.execute_script(chips)) == 3
    assert js(browser, "CSS.highlights.get('emphasis').size") == 2  # in sent messages
    for remaining in (2, 1, 0):
        click(browser, "#emphasised .chip")
        assert len(browser.execute_script(chips)) == remaining
    assert js(browser, "document.querySelector('#no-emphasis').checkVisibility()")
    assert browser.get_log("browser") == []


# Stops, errors and keys


@needs_browser
def test_stopping_a_reply_stops_the_server_too(browser, instant_server):
    visit(browser, instant_server.url)
    write(browser, "draft", "be slow\n")
    wait(browser, "document.querySelectorAll('.reply .t').length > 4")
    keys(browser, "\ue00c")  # Escape
    wait(browser, IS_READY)
    assert instant_server.left.wait(10)
    assert replies(browser, ".problem.soft p") == ["Stopped.", "Stopped."]
    send(browser, "and now?")
    partial_replies = [body["messages"][-2]["content"] for body in instant_server.bodies[2:]]
    assert sorted(partial_replies) == sorted(replies(browser)[:2])


@needs_browser
def test_an_error_is_shown_where_it_happened_and_can_be_retried(browser, instant_server):
    visit(browser, instant_server.url)
    send(browser, "please refuse")
    problems = replies(browser, ".problem p")
    assert len(problems) == 2 and all(text.endswith(", not 0.5.") for text in problems)
    wait(browser, "/^A failed: .* B failed: /.test(document.querySelector('#alert').innerText)")
    browser.get_log("browser")  # the browser logs every 400 response
    request_count = len(instant_server.bodies)
    send(browser, "and now?")
    cells = text_of(browser, ".turn:last-child .replies")
    assert re.fullmatch("A.* turn 1 .*boost.*B.*again", cells)
    click(browser, ".problem .link")
    wait(browser, IS_READY)
    assert len(instant_server.bodies) == request_count + 1
    visit(browser, instant_server.url)
    send(browser, "please break")
    assert replies(browser, ".problem p") == [OUT_OF_MEMORY] * 2
    assert replies(browser) == ["".join(f" word{n}" for n in range(5))] * 2
    assert browser.get_log("browser") == []


@needs_browser
def test_a_server_that_needs_a_key_is_sent_it(browser, instant_server):
    instant_server.locked = True
    visit(browser, instant_server.url, ready=False)
    wait(browser, "document.querySelector('#key-details').open")
    assert text_of(browser, "#notice-text") == "This server has an API key; enter it to begin."
    over = "document.elementFromPoint(box.x + 4, box.y + 4).tagName"
    label = "const box = document.querySelector('#key-form label').getBoundingClientRect();"
    assert js(browser, f"(() => {{ {label} return {over}; }})()") == "LABEL"
    write(browser, "key", KEY + "\n")
    wait(browser, IS_READY)
    send(browser, "hello")
    assert len(replies(browser)) == 2
    assert js(browser, "[localStorage.length, sessionStorage.length]") == [0, 1]


# Looks, names and the keyboard


@needs_browser
@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1280, False, marks=pytest.mark.slow),
        pytest.param(1280, True, marks=pytest.mark.slow),
        pytest.param(390, False, marks=pytest.mark.slow),
        (320, True),
    ],
)
def test_the_page_fits_is_readable_and_logs_no_errors(browser, instant_server, width, dark):
    visit(browser, instant_server.url, width, dark)
    write(browser, "system", SECRET_PROMPT)
    for text in ("one", "please break"):
        send(browser, text)
    browser.execute_script(
        "document.querySelectorAll('.reply .link').forEach((link) => link.textContent === 'heads' && link.click())"
    )
    for opened in (False, True):
        fits = js(browser, "[document.documentElement.scrollWidth, innerWidth]")
        assert fits[0] <= fits[1], f"open: {opened}"
        assert browser.execute_script(TEXT_COLOURS) == []
        look(browser, f"quick-{width}-{'dark' if dark else 'light'}-{opened}")
        open_details(browser)
    assert browser.get_log("browser") == []


@needs_browser
def test_every_control_has_an_accessible_name(browser, instant_server):
    visit(browser, instant_server.url)
    send(browser, "hello")
    open_details(browser)
    used = "button link slider combobox textbox spinbutton radio image switch".split()
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    visible = [node for node in nodes if not node.get("ignored")]
    controls = [node for node in visible if node.get("role", {}).get("value") in used]
    names = [node.get("name", {}).get("value", "").strip() for node in controls]
    assert len(controls) > 25 and all(names)


@needs_browser
def test_the_page_can_be_used_by_keyboard(browser, instant_server):
    from selenium.webdriver.common.keys import Keys

    visit(browser, instant_server.url)
    keys(browser, Keys.TAB)
    assert js(browser, "document.activeElement.className") == "skip"
    keys(browser, Keys.ENTER)
    assert js(browser, "document.activeElement.id") == "draft"
    keys(browser, "hello")
    press(browser, Keys.ENTER, modifier=Keys.SHIFT)
    keys(browser, "there", Keys.ENTER)
    wait(browser, f"document.querySelectorAll('.reply').length === 2 && {IS_READY}")
    assert instant_server.bodies[0]["messages"][-1]["content"] == "hello\nthere"
    wait(browser, "document.querySelector('#status').textContent.includes('answered')")
