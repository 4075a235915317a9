"""A page with everything on it, and the same page with hostile text in every place."""

from __future__ import annotations

import itertools
import math

import pytest

from microtome.papers.comparison import Reported
from microtome.report import Page, Section, write
from microtome.views import (
    Bars,
    BarSeries,
    Card,
    Curve,
    Headline,
    HeatMap,
    Level,
    Panels,
    Sentences,
    Series,
    Table,
)

N_LAYERS, N_HEADS = 12, 12


def delta(layer: int, head: int) -> float:
    """Some made-up change of a score: large at one head, small elsewhere."""
    if (layer, head) == (3, 7):
        return -0.083
    return 0.012 * math.sin(1.7 * layer + 2.3 * head) * (1 + layer / 12)


def decoding_section(text) -> Section:
    depths = tuple(float(d) for d in range(N_LAYERS + 1))
    share = tuple(min(0.99, 0.12 + 0.3 * d) - (0.04 * max(0, d - 9)) for d in depths)
    curve = Curve(
        text("Tokens that come back at every depth"),
        text("depth"),
        text("token accuracy"),
        (
            Series(
                text("decoded (mlm)"),
                depths,
                share,
                tuple(s - 0.02 for s in share),
                tuple(s + 0.01 for s in share),
            ),
            Series(text("token after [CLS]"), depths, (None, *(s * 0.7 for s in share[1:]))),
            Series(
                text("control: random blocks"),
                depths,
                tuple(0.17 / (1 + d) for d in depths),
                is_control=True,
            ),
        ),
    )
    words = tuple(
        text(w)
        for w in [
            "it",
            "'",
            "s",
            "a",
            "bitter",
            "##sweet",
            "and",
            "lyrical",
            "mix",
            "of",
            "elements",
            ".",
        ]
    )
    decoded = tuple(
        (text(f"depth {d}"), tuple(w if (d + i) % 5 else text("the") for i, w in enumerate(words)))
        for d in range(0, N_LAYERS + 1, 2)
    )
    return Section(
        name=text("decoding"),
        question=text("Which depths already speak the language of the output layer?"),
        source=text("Kao et al. 2020, section 2"),
        status="done",
        finding=text(
            "Read through the mlm readout, 9 of 11 inner depths give back at least 80 % of the"
            " tokens; the last depth gives back 87.0 %. Random blocks lie clearly below."
        ),
        views=(curve, Sentences(text("One text, decoded at every depth"), words, decoded)),
        method=text("An unmasked text goes in.\n\nThe state at every depth is decoded."),
        reported=(
            Reported(
                text("inner depths above 80 %"),
                text("most models, except depth 0 and BERT-large"),
                text("9 of 11"),
                text("Kao et al. 2020, section 2.2"),
            ),
        ),
        rows=tuple(
            {"depth": int(d), "accuracy": s, text("input"): text("a text")}
            for d, s in zip(depths, share, strict=True)
        ),
    )


def disabling_section(text) -> Section:
    values = tuple(tuple(delta(i, j) for j in range(N_HEADS)) for i in range(N_LAYERS))
    names = tuple(text(str(i)) for i in range(N_LAYERS))
    heat = HeatMap(
        text("Change when one head is disabled"),
        text("layer"),
        text("head"),
        names,
        names,
        ((None, *values[0][1:]), *values[1:]),
        text("points"),
        marked=((3, 7), (11, 2)),
        diverging=True,
        says=text("Head 3.7 carries the task"),
        notes=tuple(tuple(text("−10.1 to −6.5") for _ in row) for row in values),
    )
    columns = ("target", "value", "delta", "low", "high", "p", "p_holm", "p_maxt")
    rows = tuple(
        (f"{i}.*", 0.87 + d, d, d - 0.02, d + 0.02, 0.0004 * i, min(1.0, 0.005 * i), 0.04 * i)
        for i, d in ((i, delta(i, 5)) for i in range(N_LAYERS))
    )
    whole = Table(text("Whole layers disabled"), columns, rows, ("value", "delta", "low", "high"))
    return Section(
        name=text("head-disabling"),
        question=text("Which heads and layers does the model need for this task?"),
        source=text("Kovaleva et al. 2019, Disabling self-attention heads"),
        status="done",
        finding=text(
            "144 heads disabled one at a time; accuracy without any edit is 87.3 %. 1 matters and 0"
            " are in the way beyond chance. Picking the best head on the same rows would claim +1.9"
            " points; scored on other rows the gain is +0.1 (−0.6 to +0.8): it can't be told from"
            " none."
        ),
        views=(heat, whole),
        method=text("A disabled head attends to every real token alike (1/L)."),
        rows=tuple(dict(zip(columns, row, strict=True)) for row in rows),
    )


def share_section(text) -> Section:
    shares = tuple(tuple(abs(math.cos(i + 2 * j)) for j in range(5)) for i in range(4))
    kinds = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
    view = HeatMap(
        text("Share of every pattern"),
        text("task"),
        text("pattern"),
        tuple(text(t) for t in ("micro-sentiment", "mrpc", "qqp", "rte")),
        tuple(text(k) for k in kinds),
        shares,
        text("share"),
    )
    return Section(
        text("attention-patterns"), text("What do heads look at?"), text("Kovaleva"), "done",
        text("Most look at [SEP]."), (view,),
    )  # fmt: skip


def joint_section(text) -> Section:
    """Several models and tasks: panels, bars, baselines, a divider, a grouped and marked table."""
    tasks = tuple(text(task) for task in ("sst2", "mrpc", "rte", "stsb"))
    models = tuple(text(model) for model in ("bert", "albert", "roberta"))
    layers = tuple(float(n) for n in range(N_LAYERS, 2 * N_LAYERS))

    def curve(title, shift):
        lines = tuple(
            Series(name, layers, tuple(0.5 + shift + 0.02 * (i + math.sin(x)) for x in layers))
            for i, name in enumerate(models)
        )
        return Curve(
            title, text("layers"), text("accuracy"), lines, divider=N_LAYERS + 2.5,
            divider_label=text("duplicated"),
            levels=(Level(models[0], 0.51 + shift), Level(text("chance"), 0.5)),
        )  # fmt: skip

    def shares(title):
        parts = tuple(BarSeries(text(f"pattern {i}"), tuple(0.2 for _ in tasks)) for i in range(5))
        return Bars(title, text("task"), text("share of maps"), tasks, parts, stacked=True)

    cells = tuple(tuple(0.01 * (i - j) for j in range(N_HEADS)) for i in range(N_LAYERS))
    names = tuple(map(str, range(N_HEADS)))
    maps = tuple(
        HeatMap(task, text("layer"), text("head"), names, names, cells, text("points"),
                marked=((1, 2),), diverging=True)
        for task in tasks
    )  # fmt: skip
    scores = tuple(
        BarSeries(text(f"start {i}"), (0.6, None, -0.1, 0.8), (0.5,) * 4, (0.7,) * 4)
        for i in range(3)
    )
    table = Table(
        text("Fine-tuned at every depth"), (text("model"), "layers", "EM", "F1"),
        ((models[0], 12, 0.8, 0.85), (models[0], 15, 0.81, 0.84)), percent=("EM", "F1"),
        groups=(("", 2), (text("SQuAD 2.0"), 2)), better=((1, 2),), worse=((1, 3),),
    )  # fmt: skip
    return Section(
        text("several"), text("Do models differ?"), text("Kao et al. 2021"), "done",
        text("They do."),
        (
            curve(text("Three models"), 0.0),
            Panels(text("Task by task"), tuple(curve(t, 0.1 * i) for i, t in enumerate(tasks))),
            Panels(text("Heads, task by task"), maps),
            shares(text("Patterns")),
            Panels(text("Patterns, model by model"), tuple(map(shares, models))),
            Bars(text("Scores of every start"), text("task"), text("score"), tasks, scores),
            table,
        ),
    )  # fmt: skip


def made_page(text) -> Page:
    sections = (
        disabling_section(text),
        decoding_section(text),
        share_section(text),
        joint_section(text),
        Section(
            text("layer-removal"), text("Which layers may be cut?"), text("Kao et al. 2021"),
            "failed", text("not measured: out of memory"), problem=text("remove(0): out of memory"),
        ),
        Section(
            text("weight-drift"), text("Which layers move?"), text("Singh"), "left out",
            text("left out of this run"),
        ),
    )  # fmt: skip
    cost = Table(
        text("What may be cut, and what it saves"),
        ("variant", "score", "change", "low", "high", "parameters", "speed"),
        (
            (text("as it is"), 0.873, 0.0, None, None, 22713216, 1.0),
            (text("layer 5 removed"), 0.871, -0.002, -0.011, 0.007, 20938752, 1.187),
            (text("head 2.5 disabled (honest gain)"), 0.874, 0.001, -0.006, 0.008, None, 1.0),
        ),
        percent=("score", "change", "low", "high"),
    )
    headline = Headline(
        text("Head 3.7 carries the task."),
        tuple(
            Card(text(label), text(value), text(note))
            for label, value, note in (
                ("heads that matter", "1 of 144", "one at a time"),
                ("accuracy", "87.3 %", "85.1 to 89.2 on 872 rows"),
                ("largest loss: head 3.7", "−8.3 points", ""),
                ("best head, on other rows", "+0.1 points", "−0.6 to +0.8"),
            )
        ),
        text("All heads are compared on the same rows."),
    )
    return Page(
        title=text("Examination of minilm on micro-sentiment"),
        model=text("minilm"),
        task=text("micro-sentiment"),
        answers=tuple(section.finding for section in sections[:2]),
        sections=sections,
        front=(cost,),
        headline=headline,
        picture=sections[0].views[0],  # type: ignore[arg-type]
        facts={
            "versions": {"python": "3.11.7", "torch": "2.13.0", text("numpy"): text("2.4.1")},
            "machine": {"cores": 2, "system": "Linux"},
            "commit": "5e43c0b",
            "request": {"rows": {"limit": 1000, "path": text("data/mine.csv")}, "seeds": [0, 1]},
        },
    )


@pytest.fixture(scope="session")
def page() -> Page:
    return made_page(lambda words: words)


HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'><svg/onload=alert(3)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u202c",
    "\x00\x07\x1b[31m",
    "😀👩‍🔬",
    "שלום",
    "$\\frac{1}{0}$",
    "&lt;b&gt;&amp;",
    "</style><style>*{display:none}",
    "]]><!--",
    "\ud800",
    "x" * 300,
)


@pytest.fixture(scope="session")
def hostile_page() -> Page:
    """All hostile strings behind each text; where labels are cut, each comes first in turn."""
    turn = itertools.count()

    def hostile(words: str) -> str:
        k = next(turn) % len(HOSTILE)
        return " ".join((words, *HOSTILE[k:], *HOSTILE[:k]))

    return made_page(hostile)


@pytest.fixture(scope="module")
def written(page, hostile_page, tmp_path_factory, pdf_files):
    """Both reports, written once: the path of the page by name."""
    folder = tmp_path_factory.mktemp("reports")
    return {
        "page": write(page, folder / "plain"),
        "hostile_page": write(hostile_page, folder / "hostile"),
    }
