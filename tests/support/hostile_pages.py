"""Run folders whose records or manifest are replaced, and a page of texts that try to be markup."""

from synthetic_run import NASTY, as_json, write_run

from holdfast.records import read_run
from holdfast.records.lines import to_line, to_manifest
from holdfast.records.manifest import read_raw_manifest
from holdfast.report.page import Picture, Table, render_study


def rewrite(folder, records, **manifest):
    """Replaces the records and these manifest fields of a run folder."""
    old = read_raw_manifest(folder)
    fields = {name: value for name, value in old.items() if name != "crc32"}
    (folder / "manifest.json").write_bytes(to_manifest({**fields, **manifest}))
    (folder / "records.jsonl").write_bytes(b"".join(map(to_line, records)))


def hostile(folder):
    """A page with text that tries to be markup in every place."""
    evil = NASTY[0] + NASTY[1] + "\"'>"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.svg").write_text("<svg/>")
    run = write_run(folder / "run", conversations=2, rounds=2, nasty=True)
    rewrite(run, as_json(read_run(run)), argv=evil, versions={evil: evil})
    content = {
        "results": [evil],
        "states": [Picture(evil, folder / "x.svg")],
        "norms": [],
        "averages": Table(evil, [(evil, evil)] * 14),
    }
    html = render_study("geometry", evil, content, {evil: read_run(run)}, (evil,))
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    return page
