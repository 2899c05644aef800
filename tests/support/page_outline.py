"""Reads what a browser would load, run or jump to on a page, for the tests of all pages."""

import html.parser
import re


class Outline(html.parser.HTMLParser):
    """Ids, links, scripts, tags and sources of a page; event handlers in the markup are errors."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.scripts, self.tags, self.sources = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        elif "href" in attrs or "src" in attrs:
            self.sources.append(attrs.get("href", attrs.get("src")))
        if tag == "script":
            self.scripts.append(attrs.get("type"))
        assert not [name for name in attrs if name.startswith("on")], "no handler in markup"


def read_page(path):
    """The outline of a page; it must be whole, load nothing, run one script, have no dead link."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "default-src 'none'; script-src 'sha256-" in text
    assert "url(" not in text and "@import" not in text
    assert not re.search(r"https?://", re.sub(r"<script type.*?</script>", "", text, flags=re.S))
    outline = Outline(text)
    assert all(source.startswith("data:") for source in outline.sources)
    assert outline.scripts.count(None) == 1, "one script that runs: the page's own"
    assert len(outline.ids) == len(set(outline.ids))
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)
    assert outline.tags.count("h1") == 1 and outline.tags.count("main") == 1
    return outline
