"""The tasks of the papers, as values.

Counts are the published ones. GLUE keeps the labels of its test sets, except MRPC's, which are
in the original ``msr_paraphrase_test.txt``.
"""

from __future__ import annotations

from microtome.tasks import tagging
from microtome.tasks.task import Columns, Format, Hub, Hyperparameters, NativeFile, Split, Task

KAO, SINGH, KOVALEVA = "Kao et al.", "Singh & Giovanardi", "Kovaleva et al."


def _splits(
    columns: Columns,
    sizes: tuple[int, int, int],
    *,
    unlabelled_test: Columns | None = None,
    skip_broken: bool = False,
) -> tuple[Split, ...]:
    """train.tsv, dev.tsv and test.tsv; a test file without labels has its own columns."""

    def split(name: str, n_rows: int, hub_split: str, test: Columns | None = None) -> Split:
        file = NativeFile(f"{name}.tsv", "tsv", test or columns, skip_broken)
        return Split(name, n_rows, (file,), labelled=test is None, hub_split=hub_split)

    return (
        split("train", sizes[0], "train"),
        split("dev", sizes[1], "validation"),
        split("test", sizes[2], "test", unlabelled_test),
    )


def _glue(config: str, columns: Columns) -> Hub:
    return Hub("nyu-mll/glue", config, columns)


def _premise_files(
    *names: tuple[str, Format], label: str | None = "gold_label"
) -> tuple[NativeFile, ...]:
    """Files of SNLI and MNLI: the same column names in tsv and in JSON lines."""
    return tuple(
        NativeFile(
            name,
            format,
            Columns("sentence1", "sentence2", label, "index" if format == "tsv" else "pairID"),
        )
        for name, format in names
    )


_SENTENCE = Columns("sentence", label="label")
_SENTENCES = Columns("sentence1", "sentence2", "label", "index")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")
_MSR = Columns("#1 String", "#2 String", "Quality")
_COLA = Columns("sentence", label="label", header=("source", "label", "mark", "sentence"))
_STSB = Columns("sentence1", "sentence2", "score", "index")
_QQP = Columns("question1", "question2", "is_duplicate", "id")
_QNLI = Columns("question", "sentence", "label", "index")
_SQUAD = Columns("question", "context", "answers", "id")

SST2 = Task(
    name="sst2",
    kind="classification",
    labels=("negative", "positive"),
    metrics=("accuracy",),
    summary="sentiment of film reviews, phrases and sentences (GLUE)",
    splits=_splits(
        _SENTENCE, (67_349, 872, 1_821), unlabelled_test=Columns("sentence", id="index")
    ),
    hub=_glue("sst2", _SENTENCE),
    papers=(SINGH, KOVALEVA),
)

SST2_SENTENCE = Task(
    name="sst2-sentence",
    kind="classification",
    labels=("negative", "positive"),
    metrics=("accuracy",),
    summary="sentiment of film reviews, whole sentences",
    splits=_splits(_SENTENCE, (6_920, 872, 1_821)),
    hub=Hub("SetFit/sst2", None, Columns("text", label="label")),
    papers=(KAO,),
)

MRPC = Task(
    name="mrpc",
    kind="classification",
    labels=("not_equivalent", "equivalent"),
    metrics=("f1", "accuracy"),
    summary="do two sentences say the same?",
    splits=(
        *_splits(_MSR, (3_668, 408, 1_725))[:2],
        Split(
            "test",
            1_725,
            (
                NativeFile("msr_paraphrase_test.txt", "tsv", _MSR),
                NativeFile("test.tsv", "tsv", Columns("#1 String", "#2 String", id="index")),
            ),
            hub_split="test",
        ),
    ),
    hub=_glue("mrpc", Columns("sentence1", "sentence2", "label")),
    papers=(KOVALEVA,),
)

STSB = Task(
    name="stsb",
    kind="regression",
    metrics=("pearson", "spearman"),
    summary="how similar are two sentences, 0 to 5?",
    splits=_splits(
        _STSB,
        (5_749, 1_500, 1_379),
        unlabelled_test=Columns("sentence1", "sentence2", id="index"),
    ),
    hub=_glue("stsb", Columns("sentence1", "sentence2", "label")),
    papers=(KOVALEVA,),
)

QQP = Task(
    name="qqp",
    kind="classification",
    labels=("not_duplicate", "duplicate"),
    metrics=("f1", "accuracy"),
    summary="do two questions ask the same?",
    splits=_splits(
        _QQP,
        (363_849, 40_430, 390_965),
        unlabelled_test=Columns("question1", "question2", id="id"),
        skip_broken=True,
    ),
    hub=_glue("qqp", Columns("question1", "question2", "label")),
    papers=(KOVALEVA,),
)

RTE = Task(
    name="rte",
    kind="classification",
    labels=_ENTAILMENT,
    metrics=("accuracy",),
    summary="does the second sentence follow from the first?",
    splits=_splits(
        _SENTENCES,
        (2_490, 277, 3_000),
        unlabelled_test=Columns("sentence1", "sentence2", id="index"),
    ),
    hub=_glue("rte", Columns("sentence1", "sentence2", "label")),
    papers=(KOVALEVA,),
)

QNLI = Task(
    name="qnli",
    kind="classification",
    labels=_ENTAILMENT,
    metrics=("accuracy",),
    summary="does the sentence answer the question?",
    splits=_splits(
        _QNLI,
        (104_743, 5_463, 5_463),
        unlabelled_test=Columns("question", "sentence", id="index"),
    ),
    # The file doesn't say which paragraph a sentence is from: rows that share a question or a
    # sentence are from the same one, and so are those linked through others.
    cluster_by="text or pair",
    hub=_glue("qnli", Columns("question", "sentence", "label")),
    papers=(SINGH, KOVALEVA),
)

MNLI = Task(
    name="mnli",
    kind="classification",
    labels=_INFERENCE,
    no_label="-",
    metrics=("accuracy",),
    summary="entailment, neutral or contradiction? many genres",
    splits=(
        Split(
            "train",
            392_702,
            _premise_files(
                ("train.tsv", "tsv"),
                ("train.jsonl", "jsonl"),
                ("multinli_1.0_train.jsonl", "jsonl"),
            ),
            hub_split="train",
        ),
        *(
            Split(
                split,
                n_rows,
                _premise_files(
                    (f"{name}.tsv", "tsv"),
                    (f"{name}.jsonl", "jsonl"),
                    (f"multinli_1.0_{name}.jsonl", "jsonl"),
                ),
                n_unlabelled=10_000 - n_rows,
                hub_split=f"validation{name.removeprefix('dev')}",
            )
            for split, name, n_rows in (
                ("dev", "dev_matched", 9_815),
                ("dev_mismatched", "dev_mismatched", 9_832),
            )
        ),
        Split(
            "test",
            9_796,
            _premise_files(("test_matched.tsv", "tsv"), label=None),
            labelled=False,
            hub_split="test_matched",
        ),
    ),
    cluster_by="text",
    hub=_glue("mnli", Columns("premise", "hypothesis", "label")),
    papers=(KOVALEVA,),
)

COLA = Task(
    name="cola",
    kind="classification",
    labels=("unacceptable", "acceptable"),
    metrics=("matthews",),
    summary="is the sentence acceptable English?",
    splits=_splits(_COLA, (8_551, 1_043, 1_063), unlabelled_test=Columns("sentence", id="index")),
    hub=_glue("cola", _SENTENCE),
    papers=(SINGH,),
)

SNLI = Task(
    name="snli",
    kind="classification",
    labels=_INFERENCE,
    no_label="-",
    metrics=("accuracy",),
    summary="entailment, neutral or contradiction? picture captions",
    splits=tuple(
        Split(
            split,
            n_rows,
            _premise_files((f"snli_1.0_{split}.jsonl", "jsonl"), (f"snli_1.0_{split}.txt", "tsv")),
            n_unlabelled=n_unlabelled,
            hub_split=hub_split,
        )
        for split, n_rows, n_unlabelled, hub_split in (
            ("train", 549_367, 785, "train"),
            ("dev", 9_842, 158, "validation"),
            ("test", 9_824, 176, "test"),
        )
    ),
    cluster_by="text",
    hub=Hub("stanfordnlp/snli", None, Columns("premise", "hypothesis", "label")),
    papers=(KAO,),
)

SQUAD2 = Task(
    name="squad2",
    kind="spans",
    metrics=("f1", "exact_match"),
    summary="find the answer in the passage, or say that there is none (SQuAD 2.0)",
    splits=(
        Split(
            "train",
            130_319,
            (NativeFile("train-v2.0.json", "squad", _SQUAD),),
            hub_split="train",
        ),
        Split(
            "dev",
            11_873,
            (NativeFile("dev-v2.0.json", "squad", _SQUAD),),
            hub_split="validation",
        ),
    ),
    cluster_by="given",
    hub=Hub("rajpurkar/squad_v2", None, _SQUAD),
    hyperparameters=Hyperparameters(learning_rate=3e-5, epochs=2, max_length=384, stride=128),
    papers=(KAO,),
)

TASKS = (
    SST2,
    SST2_SENTENCE,
    MRPC,
    STSB,
    QQP,
    RTE,
    QNLI,
    MNLI,
    COLA,
    SNLI,
    SQUAD2,
    *tagging.TASKS,
)
