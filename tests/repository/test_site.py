"""The site as built by `make docs`: every internal link leads to a file of the site."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from paths import ROOT

SITE = ROOT / "site"

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="no site here; make docs builds it")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, file: Path):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        by_name = dict(attributes)
        self.links += [by_name[name] for name in ("href", "src") if by_name.get(name)]
        self.anchors |= {by_name["id"]} if by_name.get("id") else set()


def test_every_link_of_the_site_leads_somewhere():
    pages = {file: Page(file) for file in SITE.rglob("*.html") if file.name != "404.html"}
    assert len(pages) > 30
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{file.relative_to(SITE)} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors | {"__skip"}, (
                    f"{file.relative_to(SITE)} links to {link}"
                )


def test_the_site_loads_nothing_from_other_hosts():
    loaded = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"')
    for file in SITE.rglob("*.html"):
        assert not loaded.findall(file.read_text()), file.relative_to(SITE)


def test_the_api_page_of_the_site_has_the_docstrings():
    text = (SITE / "python" / "index.html").read_text()
    for docstring in (
        "Measures drift (Li et al. 2024, Figure 3)",
        "holdfast.load",
        "ParameterOutOfRange",
    ):
        assert docstring in text
