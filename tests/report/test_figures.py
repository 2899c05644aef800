"""Labels in figures do not overlap, judged by the boxes that matplotlib gives their texts."""

import itertools

import numpy as np
import pytest
import synthetic_run
from fast_set import only_fast
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.text import Annotation, Text
from synthetic_run import write_run

from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.decay import Curves, Decay, Heads, MassChange, Trace
from holdfast.analysis.mass_and_score import Behaviour, Correlation
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import Estimate
from holdfast.records import read_run
from holdfast.records.identity import CalibrationIdentity
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.run_figures import write_figures
from holdfast.report.trace_figures import write_trace_figures

TOUCH = 1.0  # pixels at 200 dots per inch: boxes include a little padding
ROUNDS = [(8, "rounds 1 to 4", "rounds 5 to 8"), (3, "round 1", "rounds 2 to 3")]


@pytest.fixture
def saved_figures(monkeypatch):
    """Every saved figure by file name."""
    figures = {}

    def note_path(path, data):
        figures[path.stem] = None
        return path

    monkeypatch.setattr("holdfast.report.figures.write_whole", note_path)
    print_svg = FigureCanvasSVG.print_svg

    def keep(canvas, *arguments, **options):
        print_svg(canvas, *arguments, **options)
        saved.append(canvas.figure)

    saved = []
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", keep)
    return lambda: dict(zip(figures, saved, strict=True))


def texts_of(figure):
    """Every text that is drawn, with its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(200)  # as its PNG file has
    renderer, texts = FigureCanvasAgg(figure).get_renderer(), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", lambda text, *_, **__: texts.setdefault(id(text), text))
        patch.setattr(Annotation, "draw", Text.draw)
        figure.draw(renderer)
    visible = [text for text in texts.values() if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in visible]


def overlapping(figure):
    """Pairs of texts whose boxes overlap by more than a touch."""
    pairs = itertools.combinations(texts_of(figure), 2)
    return [
        (text, other_text)
        for (text, a), (other_text, b) in pairs
        if min(a.x1, b.x1) - max(a.x0, b.x0) > TOUCH and min(a.y1, b.y1) - max(a.y0, b.y0) > TOUCH
    ]


def overflow(figure):
    """Texts that stick out of the figure."""
    e, boxes = figure.bbox, texts_of(figure)
    overflowing = [text for text, box in boxes if box.x0 < -TOUCH or box.x1 > e.x1 + TOUCH]
    return overflowing + [text for text, box in boxes if box.y0 < -TOUCH or box.y1 > e.y1 + TOUCH]


def assert_apart(figures):
    for name, figure in figures.items():
        assert overlapping(figure) == [], name
        assert overflow(figure) == [], name


def calibration(sweeps, values=3, conversations=20, seed=0, name="split-softmax"):
    """Sweeps whose settings lie close together, as they do when no setting costs much."""
    rng = np.random.default_rng(seed)
    by_round, stability = rng.random((conversations, 8)), rng.random(conversations)
    capability = 60 + rng.random(conversations)
    none = Candidate("none", None, "", by_round, stability, capability, 0)
    candidates, names = [none], []
    for sweep in range(sweeps):
        names.append((f"{name}-{sweep} on heads of layer {sweep}", "exponent"))
        for value in range(values):
            shift = 0.01 * rng.normal() + 0.002 * rng.normal(size=conversations)
            points = capability - 0.3 * rng.normal() + 0.1 * rng.normal(size=conversations)
            method, value_text = f"{name}-{sweep}:exponent=0.{value}", f"0.{value}25"
            candidates.append(
                Candidate(method, sweep, value_text, by_round, stability + shift, points, 0)
            )
    halves, about = np.arange(conversations) % 2 == 1, CalibrationIdentity(capability="knowledge")
    return Calibration(tuple(candidates), tuple(names), halves, about)


@pytest.mark.parametrize("sweeps", only_fast([1, 5, 10], 5))
def test_labels_of_a_calibration_do_not_overlap(saved_figures, tmp_path, sweeps):
    write_calibration_figures(calibration(sweeps), 1.0, tmp_path)
    figures = saved_figures()
    assert set(figures) == {"trade_off", "by_round"}
    assert_apart(figures)
    texts = [text for text, _ in texts_of(figures["trade_off"])]
    labels = [text for text in texts if text.endswith("25") and text.startswith("0.")]
    assert len(labels) >= 3 * sweeps, "every value is written"


@pytest.mark.slow
def test_labels_of_a_run_with_many_long_methods_do_not_overlap(
    saved_figures, tmp_path, monkeypatch
):
    parts = "heads=0.1/0.5/2.3/3.1/3.4+repetition:probability"
    methods = [f"split-softmax:exponent=0.{n},{parts}=0.0{n}" for n in range(1, 8)]
    monkeypatch.setattr(synthetic_run, "DECAY", dict.fromkeys(("none", *methods), 0.2))
    run = write_run(tmp_path / "run", conversations=6, rounds=12, methods=("none", *methods))
    write_figures(read_series(read_run(run)), tmp_path, whiskers=True)
    assert_apart(saved_figures())


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "early", "late"), ROUNDS)
def test_labels_of_a_trace_do_not_overlap(saved_figures, tmp_path, rounds, early, late):
    curve = [[0.3 / number] * 20 for number in range(1, rounds + 1)]
    first, drop = (np.full((32, 32), value).tolist() for value in (0.3, 0.1))
    probes = [[number % rounds + 1, number / 100, number % 2] for number in range(80)]
    some = Estimate(20, -0.1, 0.1, -0.2, 0.3)
    change = MassChange(real=some, uniform=some, difference=some)
    fall = Decay(mass=[some] * rounds, within_turns=change, between_turns=change, slope=change)
    r = Correlation(n=20, r=0.1, low=-0.2, high=0.3)
    trace = Trace(
        model="a model with a rather long name-Instruct-v0.3",
        method="none",
        dialogs=20,
        whole_dialogs=20,
        rounds=rounds,
        shown_head=(31, 31),
        heads=Heads(first_round=first, drop=drop),
        curves=Curves(average=curve, head=curve, uniform=curve),
        average=fall,
        head=fall,
        behaviour=Behaviour(
            all=r, within_rounds=r, within_dialogs=r, between_dialogs=r, probes=probes
        ),
    )
    write_trace_figures(trace, tmp_path, [trace])
    figures = saved_figures()
    assert_apart(figures)
    texts = [text for text, _ in texts_of(figures["mass_and_behaviour"])]
    assert early in texts and late in texts


@pytest.mark.parametrize("whiskers", only_fast([False, True], True))
def test_whiskers_are_drawn_only_if_requested(saved_figures, tmp_path, whiskers):
    series = read_series(read_run(write_run(tmp_path / "run", conversations=4, rounds=2)))
    write_figures(series, tmp_path, whiskers=whiskers)
    assert len(saved_figures()["drift"].axes[0].containers) == (2 if whiskers else 0)
