"""`holdfast docs --open`: the pages as HTML, whose links lead somewhere without a network."""

import re

import pytest

from holdfast.cli import main
from holdfast.cli.look_up import docs
from holdfast.cli.look_up.docs import pages
from holdfast.cli.look_up.docs_site import page_html, write_site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return write_site(pages(), tmp_path_factory.mktemp("site")).parent


def test_every_page_is_written_with_its_pictures(site):
    assert {path.stem for path in site.glob("*.html")} == {*pages()}
    images = re.findall(r'<img src="([^"]+)"', (site / "what_is_lost.html").read_text())
    assert images == ["figures/loss_map.svg"] and (site / images[0]).is_file()


def test_every_link_leads_to_a_place(site):
    texts = {path.name: path.read_text() for path in site.glob("*.html")}
    dead_links, link_count = [], 0
    for name, text in texts.items():
        for link in re.findall(r'href="([^"]+)"', text):
            if link.startswith(("http://", "https://")):
                continue
            page, _, anchor = link.partition("#")
            html = texts.get(page or name, "")
            link_count += 1
            if not html or (anchor and not re.search(rf'(id|name)="{anchor}"', html)):
                dead_links.append((name, link))
    assert link_count > 1000 and dead_links == []


def test_what_the_package_does_not_hold_is_named(tmp_path):
    text = "# One\n\n[a file](../src/x.py) ![a curve](../r/c.png) [two](two.md#its-part)\n"
    body, pictures = page_html("one", text, {"one": "One", "two": "Two & more"}, tmp_path)
    assert '<span title="src/x.py, in the repository">a file</span>' in body
    assert "[Picture, in the repository: a curve]" in body and pictures == []
    assert '<a href="two.html#its-part">two</a>' in body and "Two &amp; more" in body


def test_a_browser_opens_the_page_that_is_named(monkeypatch, tmp_path, capsys):
    opened = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(docs, "has_display", lambda: True)
    monkeypatch.setattr(docs, "open_in_browser", opened.append)
    assert main(["docs", "--open"]) == main(["docs", "logs.md", "--open"]) == 0
    assert [path.name for path in opened] == ["index.html", "logs.html"]
    assert str(opened[0]) in capsys.readouterr().out
    assert main(["docs", "nothing", "--open"]) == 2
