"""The figures and tables of Singh & Giovanardi 2020."""

from __future__ import annotations

from microtome.papers.claims import SINGH
from microtome.papers.exhibit import SHARES_OF_LAYERS, Exhibit, Paper, Settings, Work

TITLE = (
    "How much does pre-trained information help? Partially re-initializing BERT during fine-tuning"
    " to analyze the contribution of layers"
)
SST2, QNLI, COLA = "sst2", "qnli", "cola"
TASKS = (SST2, QNLI, COLA)
MATCHED = 670.0  # rows of both tasks in Figure 1 c
_RECIPE = {"epochs": 2}
_SEEDS = {"seeds": [0, 1, 2]}
_DEMO: Settings = {"fractions": [160.0, 32.0], **_RECIPE}
_SMALL: Settings = {"fractions": [6700.0, MATCHED, 67.0]}
_PAPER: Settings = {"fractions": [1.0, 0.1, 0.01]}
_FEWER = {SHARES_OF_LAYERS: [0, 1 / 3, 2 / 3, 1], **_DEMO}
REINITIALIZATION = Work(
    "reinitialization", TASKS, _SEEDS, demo=_FEWER, small=_SMALL,
    paper=_PAPER,
)  # fmt: skip
MATCHED_SIZES = Work(
    "reinitialization", (SST2, QNLI), _SEEDS, demo=_FEWER,
    small=_SMALL, paper={"fractions": [MATCHED]},
)  # fmt: skip
PROBING = Work("frozen-probing", TASKS, _SEEDS, _DEMO, _SMALL, _PAPER)
DRIFT = Work("weight-drift", TASKS, _SEEDS, _DEMO, _SMALL, _PAPER)

_REINITIALIZED = "Re-initialised layers against the score"
_PROBED = "Probing of frozen layers, over re-initialisation"
_MOVED = "Distance of the output weights from the pre-trained ones, by layer"


def _curves(name: str, task: str, shown: str, *claims: str) -> Exhibit:
    return Exhibit(
        name, f"{_REINITIALIZED}: {shown}", "score by re-initialised layers",
        (REINITIALIZATION,), (task,), tuple(("reinitialization", key) for key in claims),
    )  # fmt: skip


def _probes(name: str, task: str, shown: str, *claims: str) -> Exhibit:
    return Exhibit(
        name, f"{_PROBED}: {shown}", "probing over re-initialisation",
        (PROBING, REINITIALIZATION), (task,), tuple(("frozen-probing", key) for key in claims),
    )  # fmt: skip


def _distances(name: str, task: str, shown: str, *claims: str) -> Exhibit:
    return Exhibit(
        name, f"{_MOVED}: {shown}", "distance by layer", (DRIFT,), (task,),
        tuple(("weight-drift", key) for key in claims),
    )  # fmt: skip


SINGH_2020 = Paper(
    "singh2020", SINGH, TITLE, ("bert-base-uncased",),
    {SST2: "micro-sentiment", QNLI: "micro-entailment", COLA: "micro-acceptability"},
    exhibits=(
        Exhibit("Table 1", "The tasks and their sizes", "sizes of tasks", tasks=TASKS),
        _curves("Figure 1 a", SST2, "SST-2, all sizes", "little data", "last layers"),
        _curves("Figure 1 b", QNLI, "QNLI, all sizes", "qnli", "last layers"),
        Exhibit("Figure 1 c", f"{_REINITIALIZED}: both tasks with about 670 rows",
            "score by re-initialised layers, sizes matched", (MATCHED_SIZES,), (SST2, QNLI),
            (("reinitialization", "middle layers"),)),
        _curves("Figure 1 d", COLA, "CoLA", "cola"),
        _probes("Figure 2 a", SST2, "SST-2", "peak", "top layers", "decline"),
        _probes("Figure 2 b", QNLI, "QNLI", "peak", "top layers", "decline"),
        _distances("Figure 3 a", SST2, "SST-2", "depth", "data"),
        _distances("Figure 3 b", QNLI, "QNLI", "depth", "data"),
        _probes("Figure 5 a", COLA, "CoLA", "cola"),
        _distances("Figure 5 b", COLA, "CoLA", "cola"),
    ),
)  # fmt: skip
