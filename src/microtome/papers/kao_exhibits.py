"""The figures and tables of Kao et al. 2020 and 2021."""

from __future__ import annotations

from microtome.papers.claims import KAO_A, KAO_B
from microtome.papers.exhibit import MORE_LAYERS, Exhibit, Paper, Work

TITLE_2020 = (
    "BERT's output layer recognizes all hidden layers? Some intriguing phenomena and a simple way"
    " to boost BERT"
)
TITLE_2021 = (
    "Further boosting BERT-based models by duplicating existing layers: Some intriguing phenomena"
    " inside BERT"
)
SST2, SNLI, SQUAD = "sst2-sentence", "snli", "squad2"
TASKS = (SST2, SNLI, SQUAD)
MODELS = (
    "bert-base-uncased", "bert-large-uncased-whole-word-masking", "albert-base-v2",
    "albert-large-v2", "albert-xlarge-v2", "albert-xxlarge-v2",
)  # fmt: skip
STAND_INS = {SST2: "micro-sentiment", SNLI: "micro-entailment", SQUAD: "micro-squad"}
SPLITS = {SST2: "test", SNLI: "test", SQUAD: "dev"}

_DEMO = {"fraction": 160.0, "epochs": 2}
_SMALL = {"fraction": 6920.0}
_SEEDS = {"seeds": [0, 1, 2]}
# Settings alike in all work, so that a fine-tuning that several exhibits need is one trial.
DECODING = Work(
    "decoding", TASKS, {"finetuned": True}, demo={MORE_LAYERS: [1, 2, 4, 6, 8, 12], **_DEMO},
    small={"layers": "all", **_SMALL}, paper={"layers": "all"},
)  # fmt: skip
DUPLICATION = Work(
    "duplication", TASKS, {"strategy": ["first"], **_SEEDS},
    demo={MORE_LAYERS: [1, 2], **_DEMO}, small={MORE_LAYERS: [1, 2, 3, 4], **_SMALL},
    paper={MORE_LAYERS: list(range(1, 13))},
)  # fmt: skip
STRATEGIES = Work(
    "duplication", (SST2,), {"strategy": ["first", "last", "repeat:0"], **_SEEDS},
    demo={MORE_LAYERS: [1, 2], **_DEMO}, small={MORE_LAYERS: [1, 2, 3, 4], **_SMALL},
    paper={MORE_LAYERS: list(range(1, 13))}, stack="unshared",
)  # fmt: skip
ENSEMBLING = Work(
    "ensembling", (SQUAD,), {"top": 3}, demo={"halves": 100}, stored="from"
)  # fmt: skip
REMOVAL = Work("layer-removal", (SST2,), demo=_DEMO, small=_SMALL)

_INNER = (("decoding", "inner depths"), ("decoding", "control"), ("decoding", "fine-tuned"))
_DECODED = (*_INNER, ("decoding", "first token"))
_DEEPER = (("decoding", "deeper"), ("decoding", "xlarge"))
_GAINS = (
    ("duplication", "gain"), ("duplication", "how many"), ("duplication", "easy task"),
    ("duplication", "bert-large"),
)  # fmt: skip
Claims = tuple[tuple[str, str], ...]
_DRAWN_OVER = (
    "depth 0 is the word embeddings; beyond a model's own depth, the last state of the same model"
    " with layers duplicated"
)


def _by_depth(name: str, who: str, task: str, shown: str, *, claims: Claims = ()) -> Exhibit:
    return Exhibit(
        name, f"Token accuracy of {who} by depth on {shown}", "token accuracy by depth",
        (DECODING,), (task,), claims, "unshared" if who == "BERT" else "shared", note=_DRAWN_OVER,
    )  # fmt: skip


def _by_layers(name: str, what: str, task: str, metric: str = "") -> Exhibit:
    return Exhibit(
        name, f"{what} against the number of layers", "score by layers", (DUPLICATION,), (task,),
        _GAINS, metric=metric,
    )  # fmt: skip


def _decoded_text(name: str) -> Exhibit:
    return Exhibit(
        name, "One sentence, decoded at every depth", "decoded text", (DECODING,), (SST2,),
        stack="unshared", note="the first text of the task, not the paper's sentence",
    )  # fmt: skip


KAO_2020 = Paper(
    "kao2020", KAO_A, TITLE_2020,
    MODELS, STAND_INS, splits=SPLITS,
    exhibits=(
        _by_depth("Figure 2", "BERT", SST2, "SST-2", claims=(*_DECODED, *_DEEPER)),
        _decoded_text("Table 1"),
        _by_depth("Figure 3", "ALBERT", SST2, "SST-2", claims=(*_DECODED, *_DEEPER)),
        _by_layers("Figure 4", "F1 on SQuAD 2.0", SQUAD, "f1"),
        _by_layers("Figure 5", "Accuracy on SNLI", SNLI),
        Exhibit("Table 2", "Ensembles over depths against three seeds", "ensembles",
            (DUPLICATION, ENSEMBLING), (SQUAD,), (("ensembling", "ensembles"),)),
        _by_depth("Figure 6a", "BERT", SNLI, "SNLI", claims=(*_INNER, *_DEEPER)),
        _by_depth("Figure 6b", "BERT", SQUAD, "SQuAD 2.0", claims=(*_INNER, *_DEEPER)),
        _by_depth("Figure 7a", "ALBERT", SNLI, "SNLI", claims=(*_INNER, *_DEEPER)),
        _by_depth("Figure 7b", "ALBERT", SQUAD, "SQuAD 2.0", claims=(*_INNER, *_DEEPER)),
        _by_layers("Figure 8", "Accuracy on SST-2", SST2),
        Exhibit("Table 3", "Train, dev and test examples of the tasks", "sizes of tasks",
            tasks=TASKS),
    ),
)  # fmt: skip

KAO_2021 = Paper(
    "kao2021", KAO_B, TITLE_2021, MODELS, STAND_INS, splits=SPLITS,
    exhibits=(
        Exhibit("Table 1", "The models", "models"),
        _by_depth("Figure 2", "BERT", SST2, "SST-2", claims=_DECODED),
        _by_depth("Figure 3", "ALBERT", SST2, "SST-2", claims=_DECODED),
        _decoded_text("Table 2"),
        Exhibit("Section 4.1", "The token after [CLS], last depth", "first token", (DECODING,),
            (SST2,), (("decoding", "first token"),)),
        Exhibit("Figure 4", "Last state of deeper models on SST-2: 12 layers or fewer",
            "token accuracy of deeper models", (DECODING,), (SST2,), _DEEPER),
        Exhibit("Figure 5", "Last state of deeper models on SST-2: more than 12 layers",
            "token accuracy of deeper models (large)", (DECODING,), (SST2,), _DEEPER),
        Exhibit("Table 3", "BERT by number of layers, as single models", "scores by depth",
            (DUPLICATION,), TASKS, _GAINS, stack="unshared"),
        Exhibit("Table 4", "ALBERT by number of layers, as single models", "scores by depth",
            (DUPLICATION,), TASKS, _GAINS, stack="shared"),
        Exhibit("Table 5", "Ensembles of BERT", "ensembles", (DUPLICATION, ENSEMBLING), (SQUAD,),
            (("ensembling", "ensembles"),), stack="unshared"),
        Exhibit("Table 6", "Ensembles of ALBERT", "ensembles", (DUPLICATION, ENSEMBLING), (SQUAD,),
            (("ensembling", "ensembles"),), stack="shared"),
        _by_layers("Figure 6", "EM on SQuAD 2.0", SQUAD, "exact_match"),
        _by_layers("Figure 7", "F1 on SQuAD 2.0", SQUAD, "f1"),
        _by_layers("Figure 8", "Accuracy on SNLI", SNLI),
        Exhibit("Rules 1 and 2", "Other layers duplicated, or one layer many times",
            "score by strategy", (STRATEGIES,), (SST2,),
            (("duplication", "rule 1"), ("duplication", "rule 2")), stack="unshared"),
        Exhibit("Abstract", "Layers removed without training", "removal", (REMOVAL,), (SST2,),
            (("layer-removal", "removal"),)),
    ),
)  # fmt: skip
