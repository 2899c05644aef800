"""The methods, from their classes, and the names of the Python API, from their docstrings."""

from __future__ import annotations

import pkgutil
import re

from tabled.reading import markdown

from holdfast.methods.all_methods import METHODS, summary
from holdfast.methods.parameters import parameters_of, required_parameters

_NOT_LISTED = ("heads", "layers", "file")  # parameters that many methods have
API = {  # the public names by section of their page, without `holdfast.`
    "Models": "load connect connect_all from_function models.protocol.ChatModel"
    " models.local.LocalModel models.session.LocalSession Request Reply"
    " attention.batch_steering.AttentionTrace generation.reply_scoring.Scored Sampling",
    "Steering your own model": "steering unsteered encode_chats"
    " models.steering_blocks.EncodedChats",
    "Methods": "methods.parse methods.compile_methods methods.CompiledMethods methods.schema"
    " methods.MethodKind methods.Ability methods.protocols",
    "Drift": "drift.run drift.Settings drift.Cast drift.Running drift.load_suite"
    " drift.ask_baseline drift.cases",
    "Checks, calibration and fitting": "study.check study.CheckOptions study.Terms"
    " study.calibrate study.CalibrationPlan study.load_capability study.fit",
    "Tasks and profiles": "tasks.run tasks.Settings tasks.profile tasks.ProfilingPlan"
    " tasks.read_samples",
    "Logs": "logs.read_logs logs.score_logs logs.scan_logs logs.adherence"
    " transcripts.read_transcripts transcripts.LogFile transcripts.Transcript transcripts.Event"
    " transcripts.EventKind",
    "Measures, records and reports": "measures.build measures.Measure measures.Score"
    " records.read_run records.Run report.write report.table report.write_summary",
    "Clients and errors": "client wrap proxy.tally.Tally proxy.reply_scores.ScoredReply errors",
}

_FIRST_SENTENCE = re.compile(r".+?[.](?= |$)(?<!et al[.])")


def api_sections() -> str:
    """The public names, with the first sentence of each docstring."""
    lines = []
    for section, names in API.items():
        lines += [f"## {section}", ""]
        for name in names.split():
            docstring = " ".join(pkgutil.resolve_name(f"holdfast.{name}").__doc__.split())
            lines.append(f"- `holdfast.{name}`: {_FIRST_SENTENCE.match(docstring)[0]}")
        lines.append("")
    return "\n".join(lines)


def catalogue_table() -> str:
    """Every method with its parameters, as declared by its class."""
    rows = [["method", "what it does", "parameters", "source"]]
    for method in METHODS:
        parameters = [f"`{name}`" for name in parameters_of(method) if name not in _NOT_LISTED]
        cells = [example(method), summary(method), ", ".join(parameters), linked(method.source)]
        rows.append([cell.replace("*", r"\*") for cell in cells])
    return "\n".join(markdown(rows))


def example(method: type) -> str:
    """An example of a method's spec, with the parameters that it requires: "`boost:factor=2`"."""
    required = [
        f"{name}={parameters_of(method)[name].example}" for name in required_parameters(method)
    ]
    return f"`{method.name}:{','.join(required)}`" if required else f"`{method.name}`"


def linked(source: str) -> str:
    """A source with its arXiv numbers as links."""
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", source)
