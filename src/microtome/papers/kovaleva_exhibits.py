"""The figures and tables of Kovaleva et al. 2019, by the labels that the paper's text has."""

from __future__ import annotations

from microtome.papers.claims import KOVALEVA
from microtome.papers.exhibit import Exhibit, Paper, Work

TASKS = ("mrpc", "stsb", "sst2", "qqp", "rte", "qnli", "mnli")
OVERLAPPING = ("stsb", "rte")
_DEMO = {"fraction": 160.0, "epochs": 2}
_SMALL = {"fraction": 8000.0}
_FINETUNED = {"finetune": True}

PATTERNS = Work("attention-patterns", TASKS, {}, _DEMO, _SMALL)
FRAMES = Work("frame-relations")
DRIFT = Work("attention-drift", TASKS, {"seeds": [0, 1]}, _DEMO, _SMALL)
STARTS = Work("initialization", TASKS, {"seeds": [0, 1, 2]}, _DEMO, _SMALL)
FEATURES = Work("linguistic-features", TASKS, _FINETUNED, _DEMO, _SMALL)
LINKS = Work("token-links", TASKS, _FINETUNED, _DEMO, _SMALL)
HEADS = Work(
    "head-disabling", TASKS, demo={**_DEMO, "splits": 0, "random_sets": 0},
    small=_SMALL,
)  # fmt: skip

KOVALEVA_2019 = Paper(
    "kovaleva2019",
    KOVALEVA,
    "Revealing the Dark Secrets of BERT",
    ("bert-base-uncased",),
    {
        "mrpc": "micro-paraphrase",
        "stsb": "micro-similarity",
        "sst2": "micro-sentiment",
        "rte": "micro-entailment",
    },
    exhibits=(
        Exhibit(
            "Figure atttypes",
            "The five patterns of attention maps",
            "typical heads",
            (PATTERNS,),
            ("mrpc",),  # a single sentence has no block
            note="the heads in which each pattern is most frequent",
        ),
        Exhibit(
            "Figure attentionbydataset",
            "Shares of the patterns, task by task",
            "shares of patterns",
            (PATTERNS,),
            claims=(("attention-patterns", "heterogeneous"),),
        ),
        Exhibit(
            "Figure framenet",
            "An annotated exemplar",
            "annotated frames",
            (FRAMES,),
            note="an embedded exemplar, not the paper's",
        ),
        Exhibit(
            "Figure framenetresults",
            "Heads that follow frame relations",
            "frame heads",
            (FRAMES,),
            claims=(("frame-relations", "heads"),),
            note="exemplars are the embedded ones, not FrameNet's",
        ),
        Exhibit(
            "Figure cosine",
            "Cosine of pre-trained and fine-tuned attention, task by task",
            "cosine by head",
            (DRIFT,),
            claims=(("attention-drift", "layers"),),
        ),
        Exhibit(
            "Table glue-results",
            "Pre-trained, random start and fine-tuned, task by task",
            "starts",
            (STARTS,),
            claims=tuple(("initialization", key) for key in ("gain", "start", "random")),
        ),
        Exhibit(
            "Figure 5",
            "Attention to linguistic features, task by task",
            "features by head",
            (FEATURES,),
            claims=(("linguistic-features", "special"), ("linguistic-features", "features")),
        ),
        Exhibit(
            "Figure cls",
            "What [CLS] attends to in the output layer, task by task",
            "attention of [CLS]",
            (LINKS,),
            claims=(("token-links", "cls"), ("token-links", "diagonal")),
        ),
        Exhibit(
            "Figure disableheadsall",
            "Change when one head is disabled, task by task",
            "disabled heads",
            (HEADS,),
            claims=(
                ("head-disabling", "best head"),
                ("head-disabling", "random head"),
                ("head-disabling", "some heads"),
            ),
        ),
        Exhibit(
            "Figure disablelayers",
            "Score with each layer disabled, task by task",
            "disabled layers",
            (HEADS,),
            claims=(("head-disabling", "whole layer"),),
        ),
        Exhibit(
            "Discussion",
            "Words that occur in both sentences; frame heads disabled",
            "overlap and frame heads",
            (LINKS, FRAMES, HEADS),
            OVERLAPPING,
            (("token-links", "overlap"), ("frame-relations", "importance")),
        ),
    ),
)
