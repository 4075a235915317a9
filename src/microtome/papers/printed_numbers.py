"""The papers' numbers: written down as they are printed (percent), kept as shares (0–1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from microtome.papers.claims import KAO_A, KAO_B, KOVALEVA, SINGH


@dataclass(frozen=True)
class PaperFigure:
    """One number of a paper. ``columns`` say which of our rows it is to be compared with.

    ``n`` is how many rows the paper scored, where that is known: it is compared with as many.
    ``exhibit`` is the figure that shows what a number of the running text is about.
    """

    paper: str
    place: str  # table or section
    experiment: str
    model: str
    task: str
    metric: str
    setting: str
    value: float
    columns: tuple[tuple[str, str | int], ...] = ()
    note: str = ""
    suspect: bool = False
    n: int | None = None
    exhibit: str = ""

    @property
    def source(self) -> str:
        """The paper and the place in it."""
        return f"{self.paper}, {self.place}"


def share(printed: float) -> float:
    """A printed percentage as a share, without the dust of a division."""
    return round(printed / 100, 6)


# Labelled rows of the splits that the papers scored: test of SST-2 (sentences) and SNLI, else dev.
_SCORED = {
    "sst2-sentence": 1821, "snli": 9824, "squad2": 11873, "stsb": 1500, "mrpc": 408, "rte": 277,
    "qnli": 5463, "mnli": 9815, "sst2": 872,
}  # fmt: skip
# Of these the papers took other rows: all there are, or at most 1,000 of dev.
_OTHER_ROWS = ("decoding", "attention-patterns")

# Kao-b, Tables 3 and 4: layers, then EM, F1 (SQuAD 2.0), SNLI, SST-2, as printed.
_SINGLE: dict[str, tuple[tuple[int, float | None, float | None, float, float], ...]] = {
    "bert-base-uncased": ((12, 72.91, 76.06, 89.56, 91.32), (13, 73.52, 76.80, 89.61, 90.66)),
    "bert-large-uncased-whole-word-masking": (
        (24, 81.85, 84.68, 91.84, 93.62),
        (25, 81.20, 84.44, 91.94, 93.35),
    ),
    "albert-base-v2": (
        (12, 77.14, 80.47, 90.71, 93.14),
        (13, 77.95, 81.27, 90.90, 92.48),
        (17, 77.88, 81.14, 90.84, 93.19),
        (20, 78.60, 81.56, 90.50, 92.81),
    ),
    "albert-large-v2": (
        (24, 81.66, 84.75, 91.45, 94.56),
        (25, 81.80, 85.01, 94.36, 94.36),
        (27, 81.97, 85.29, 91.69, 94.44),
        (31, 82.18, 85.37, 91.44, 93.85),
    ),
    "albert-xlarge-v2": (
        (24, 84.42, 87.60, 92.33, 95.00),
        (25, 84.46, 87.71, 91.70, 95.44),
        (26, 84.67, 87.89, 92.36, 95.00),
    ),
    "albert-xxlarge-v2": (
        (12, 86.14, 89.36, 93.34, 96.89),
        (13, 86.37, 89.49, 93.39, 96.49),
        (18, 86.04, 89.25, 93.49, 96.81),
        (20, None, None, 93.47, 97.03),
    ),
}
_SINGLE_COLUMNS = (
    ("squad2", "exact_match"), ("squad2", "f1"), ("snli", "accuracy"), ("sst2-sentence", "accuracy")
)  # fmt: skip
_SINGLE_NOTES = {
    ("bert-large-uncased-whole-word-masking", 25, "snli"): "above the baseline's 91.84, though the"
    " text says that no deeper BERT-large is better",
    ("albert-large-v2", 25, "snli"): "suspect: equals the SST-2 cell next to it, and is 2.7 points"
    " above its neighbours",
    ("albert-base-v2", 17, "sst2-sentence"): "above the baseline's 93.14, though Kao et al. 2020,"
    " appendix B, finds gains for xlarge and xxlarge only",
}
_SUSPECT = {("albert-large-v2", 25, "snli")}

# Kao-b, Tables 5 and 6; those of the rules "baseline" and "top-3" are also Kao-a, Table 2.
_ENSEMBLES: dict[str, tuple[tuple[str, str, float, float], ...]] = {
    "bert-base-uncased": (("baseline", "", 74.04, 77.01), ("top-3", "13,15,16", 74.91, 77.86)),
    "albert-base-v2": (
        ("baseline", "", 78.85, 82.04),
        ("top-3", "19,20,21", 79.01, 82.02),
        ("all better", "14,15,19,20,22-24", 79.33, 82.30),
    ),
    "albert-large-v2": (
        ("baseline", "", 82.49, 85.63),
        ("top-3", "27,31,32", 82.73, 85.87),
        ("all better", "25-32,35", 82.96, 86.07),
    ),
    "albert-xlarge-v2": (
        ("baseline", "", 84.97, 88.06),
        ("top-3", "26,30,32", 85.50, 88.59),
        ("all better", "25,26,30,32", 85.48, 88.62),
    ),
    "albert-xxlarge-v2": (("baseline", "", 86.85, 89.99), ("top-3", "13,15", 86.87, 89.91)),
}
_BELOW = "below the baseline ensemble, though the text says that ensembles certainly boost it"
_ENSEMBLE_NOTES = {
    ("albert-base-v2", "top-3", "f1"): _BELOW,
    ("albert-xxlarge-v2", "top-3", "f1"): _BELOW,
}


def _single_models() -> Iterator[PaperFigure]:
    for model, lines in _SINGLE.items():
        base = lines[0][0]
        for layers, *values in lines:
            for (task, metric), value in zip(_SINGLE_COLUMNS, values, strict=True):
                if value is None:
                    continue
                place = "Table 3" if model.startswith("bert") else "Table 4"
                runs = "mean of 3 seeds" if layers == base else "one run, picked"
                cell = (model, layers, task)
                yield PaperFigure(
                    KAO_B, place, "duplication", model, task, metric, f"{layers} layers, {runs}",
                    share(value), (("layers", layers),), _SINGLE_NOTES.get(cell, ""),
                    cell in _SUSPECT, _SCORED[task],
                )  # fmt: skip


def _ensembles() -> Iterator[PaperFigure]:
    for model, lines in _ENSEMBLES.items():
        for rule, members, *values in lines:
            table = "Table 5" if model.startswith("bert") else "Table 6"
            setting = f"{rule} ({members} layers)" if members else "three seeds of the unmodified"
            for metric, value in zip(("exact_match", "f1"), values, strict=True):
                note = _ENSEMBLE_NOTES.get((model, rule, metric), "")
                sources = [(KAO_B, table)]
                if rule != "all better":
                    sources.append((KAO_A, "Table 2"))
                for paper, place in sources:
                    yield PaperFigure(
                        paper, place, "ensembling", model, "squad2", metric, setting, share(value),
                        (("rule", rule),), note, n=_SCORED["squad2"],
                    )  # fmt: skip


def _quoted() -> Iterator[PaperFigure]:
    """Single numbers from running text."""
    base = "bert-base-uncased"
    heads = "Disabling self-attention heads, results"
    patterns = "BERT's self-attention patterns, results"
    for experiment, paper, place, task, metric, setting, printed, note in (
        ("decoding", KAO_B, "section 4.1", "sst2-sentence", "token accuracy",
         "token after [CLS], last depth", 59.0, "over the whole data set; model not named"),
        ("head-disabling", KOVALEVA, heads, "stsb", "gain", _BEST_HEAD, 0.1,
         "the smallest of all tasks"),
        ("head-disabling", KOVALEVA, heads, "mrpc", "gain", _BEST_HEAD, 1.2,
         "the largest of all tasks"),
        ("head-disabling", KOVALEVA, heads, "rte", "gain", "first layer disabled", 3.2,
         "about 9 of 277 examples, the best of 12 layers"),
        ("head-disabling", KOVALEVA, heads, "qnli", "gain", "a whole layer disabled", -0.2,
         "the most that is lost"),
        ("head-disabling", KOVALEVA, heads, "mnli", "gain", "a whole layer disabled", -0.2,
         "the most that is lost"),
        ("attention-patterns", KOVALEVA, patterns, "mrpc", "share", "heterogeneous", 32.0,
         "an upper bound, the smallest of all tasks"),
        ("attention-patterns", KOVALEVA, patterns, "qqp", "share", "heterogeneous", 61.0,
         "an upper bound, the largest of all tasks"),
        ("reinitialization", SINGH, "section 6.1.3", "sst2", "loss",
         "middle layers re-initialised, about 670 examples", 5.0, "about, in accuracy points"),
    ):  # fmt: skip
        n = None if experiment in _OTHER_ROWS else _SCORED[task]
        yield PaperFigure(
            paper, place, experiment, base, task, metric, setting, share(printed), note=note, n=n,
            exhibit=_SHOWN_IN.get((experiment, setting), ""),
        )  # fmt: skip


_BEST_HEAD = "best single head disabled, picked on the rows it is reported on"
_SHOWN_IN = {
    ("head-disabling", _BEST_HEAD): "Figure disableheadsall",
    ("head-disabling", "first layer disabled"): "Figure disablelayers",
    ("head-disabling", "a whole layer disabled"): "Figure disablelayers",
    ("attention-patterns", "heterogeneous"): "Figure attentionbydataset",
    ("reinitialization", "middle layers re-initialised, about 670 examples"): "Figure 1 c",
}
FIGURES: tuple[PaperFigure, ...] = (*_single_models(), *_ensembles(), *_quoted())

_ALIASES = {
    "bert-base": "bert-base-uncased",
    "bert-large-wwm": "bert-large-uncased-whole-word-masking",
}


def model_name(model: str) -> str:
    """A model's name as the papers' figures have it: no owner, no folder, lower case."""
    name = re.split(r"[/\\]", model.strip().rstrip("/\\"))[-1].lower()
    return _ALIASES.get(name, name)


def matching(model: str, task: str, experiment: str) -> tuple[PaperFigure, ...]:
    """The figures that a paper has for this very model, task and experiment."""
    subject = (model_name(model), task, experiment)
    return tuple(
        figure for figure in FIGURES if (figure.model, figure.task, figure.experiment) == subject
    )
