"""``microtome decode``: read every depth through the output layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.output import log, show, table
from microtome.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.observe import Readout
    from microtome.tasks import Dataset
    from microtome.training.readout import FittedReadout


ReadoutName = Annotated[str, typer.Option("--readout", help="auto, mlm, tied, fit or shipped.")]
Graft = Annotated[
    str | None, typer.Option("--graft", help="A model whose MLM head is used instead.")
]
FitText = Annotated[
    Path | None,
    typer.Option("--fit-text", help="--readout fit: a text file; else the task's train rows."),
]


def decode(
    model: given.Model,
    text: Annotated[str | None, typer.Option("--text", help="One text to decode.")] = None,
    task: given.Task = None,
    data: given.Data = None,
    split: given.Split = None,
    limit: given.Limit = None,
    seed: given.Seed = 0,
    text_column: given.TextColumn = None,
    pair_column: given.PairColumn = None,
    readout: ReadoutName = "auto",
    graft: Graft = None,
    fit_text: FitText = None,
    special: Annotated[
        bool, typer.Option("--special", help="Count special tokens and [UNK] too.")
    ] = False,
    max_length: given.MaxLength = None,
    device: given.Device = "cpu",
    allow_pickle: given.AllowPickle = False,
    revision: given.Revision = None,
    json: given.Json = False,
) -> None:
    """Decode the state at every depth with the output layer, beside a control of random blocks.

    Examples: microtome decode nano-bert --text "The cat sat on the mat."
    microtome decode ./my-bert --task sst2-sentence --data sst2 --limit 500
    """
    from microtome.models import resolve

    if (text is None) == (task is None and data is None):
        raise RequestError(
            "one text, or a data set, wanted", 'give --text "…", or --task and --data'
        )
    source = resolve(model, revision=revision)
    columns, dataset = (text_column, pair_column), None
    if text is None:
        dataset = _dataset(task, data, columns, split=split, limit=limit, seed=seed)
    document = _decoded(
        source, dataset, text, readout=readout, graft=graft, special=special,
        max_length=max_length, device=device, allow_pickle=allow_pickle,
        other_texts=_other_texts(readout, fit_text, graft, task, data),
    )  # fmt: skip
    document["model"] = model
    show(document, as_json=json, for_people=lambda console: _draw(console, document))


def _dataset(
    task: str | None,
    data: Path | None,
    columns: tuple[str | None, str | None],
    *,
    split: str | None,
    limit: int | None,
    seed: int,
) -> Dataset:
    """The rows to decode."""
    from microtome.tasks import open_data

    opened = open_data(task, data, split, text_column=columns[0], pair_column=columns[1])
    rows = opened.limit(limit, seed=seed)
    log(f"decoding {len(rows):,} rows of {rows.task.name}")
    return rows


def _other_texts(
    readout: str, fit_text: Path | None, graft: str | None, task: str | None, data: Path | None
) -> list[str]:
    """Text to fit a head on, never the text that is measured."""
    if graft is not None and readout in ("fit", "shipped"):
        raise RequestError(f"--graft given with --readout {readout}", "give one of them")
    if readout != "fit":
        if fit_text is not None:
            raise RequestError("--fit-text given without --readout fit")
        return []
    from microtome.experiments.readout_choice import texts_of
    from microtome.tasks import Request, open_data, open_training

    if fit_text is not None:
        return texts_of(open_data(None, fit_text))
    if task is None or (data is not None and data.is_file()):
        raise RequestError(
            "--readout fit needs text that isn't measured",
            "name some: --fit-text FILE, or a --task with training rows",
        )
    return texts_of(open_training(Request(task, data))[0])


def _decoded(
    source: Any,  # noqa: ANN401  # a Source; its module is imported by the command
    dataset: Dataset | None,
    text: str | None,
    *,
    readout: str,
    graft: str | None,
    special: bool,
    max_length: int | None,
    device: str,
    allow_pickle: bool,
    other_texts: list[str],
) -> dict[str, Any]:
    from microtome.errors import ModelError
    from microtome.evaluation import encode_for, text_clusters
    from microtome.experiments.decoding import decoded
    from microtome.models import load, load_tokenizer
    from microtome.observe import Texts, decode_document, decoded_ids, vocabulary_of

    model = load(source, device=device, allow_pickle=allow_pickle)
    tokenizer = load_tokenizer(source)
    if tokenizer is None:
        raise ModelError(f"{source.name} has no tokenizer", "put tokenizer.json beside the weights")
    donor = None if graft is None else load(graft, head="mlm", device=device)
    head = _head(model, tokenizer, readout, donor, other_texts)
    if dataset is not None:
        encoded = encode_for(model, tokenizer, dataset, max_length=max_length)
        found, control = decoded(model, tokenizer, encoded, head, special=special)
        clusters = text_clusters(dataset, encoded)
        return decode_document(source.name, found, control, clusters=clusters)
    ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
    found, control = decoded(model, tokenizer, Texts.of([ids]), head, special=special)
    return decode_document(
        source.name,
        found,
        control,
        vocabulary=vocabulary_of(tokenizer),
        text=(ids, decoded_ids(model, ids, readout=head)),
    )


def _head(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    readout: str,
    donor: PreTrainedModel | None,
    other_texts: list[str],
) -> Readout:
    from microtome.families import adapt
    from microtome.observe import fitted_head, readout_of

    if readout not in ("fit", "shipped"):
        return readout_of(adapt(model), readout, graft=donor)
    from microtome.training.readout import shipped_readout

    fitted = shipped_readout(model) if readout == "shipped" else _fitted(
        model, tokenizer, other_texts)  # fmt: skip
    return fitted_head(adapt(model), fitted.transform, fitted.decoder)


def _fitted(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, other_texts: list[str]
) -> FittedReadout:
    from microtome.training.readout import fit_readout

    log(f"fitting a readout on {len(other_texts):,} texts")
    fitted = fit_readout(model, tokenizer, other_texts)
    log(
        f"it gives back {_percent(fitted.facts.heldout_accuracy)} % of the masked tokens of"
        f" held-out text, the commonest token {_percent(fitted.facts.unigram)} %"
    )
    return fitted


def _draw(console: Console, document: dict[str, Any]) -> None:
    texts = "text" in document["depths"][0]
    columns = ("depth", "accuracy", "95 % interval", "behind [CLS]", "control")
    rows = [
        (
            row["depth"],
            _percent(row["accuracy"]),
            f"{_percent(row['low'])} to {_percent(row['high'])}",
            _percent(row["first_token_accuracy"]),
            _percent(row["control"]),
            *([row["text"]] if texts else []),
        )
        for row in document["depths"]
    ]
    title = (
        f"{document['model']}: {document['tokens']:,} tokens of {document['examples']:,} texts,"
        f" readout {document['readout']} (percent; control: random blocks)"
    )
    console.print(table(title, (*columns, "text") if texts else columns, rows))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
