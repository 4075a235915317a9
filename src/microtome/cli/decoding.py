"""``microtome decode``: read every depth through the output layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from microtome.cli import parameters as given
from microtome.cli.output import log, show, table
from microtome.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console

    from microtome.tasks import Dataset


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
    readout: Annotated[str, typer.Option("--readout", help="auto, mlm or tied.")] = "auto",
    graft: Annotated[
        str | None, typer.Option("--graft", help="A model whose MLM head is used instead.")
    ] = None,
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
    dataset = None
    if text is None:
        from microtome.tasks import open_data

        opened = open_data(task, data, split, text_column=text_column, pair_column=pair_column)
        dataset = opened.limit(limit, seed=seed)
        log(f"decoding {len(dataset):,} rows of {dataset.task.name}")
    document = _decoded(
        source, dataset, text, readout=readout, graft=graft, special=special,
        max_length=max_length, device=device, allow_pickle=allow_pickle,
    )  # fmt: skip
    document["model"] = model
    show(document, as_json=json, for_people=lambda console: _draw(console, document))


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
) -> dict[str, Any]:
    from microtome.errors import ModelError
    from microtome.evaluation import encode_for
    from microtome.experiments.decoding import decoded
    from microtome.models import load, load_tokenizer
    from microtome.observe import Texts, decode_document, decoded_ids, vocabulary_of

    model = load(source, device=device, allow_pickle=allow_pickle)
    tokenizer = load_tokenizer(source)
    if tokenizer is None:
        raise ModelError(f"{source.name} has no tokenizer", "put tokenizer.json beside the weights")
    head = None if graft is None else load(graft, head="mlm", device=device)
    if dataset is not None:
        encoded = encode_for(model, tokenizer, dataset, max_length=max_length)
        found, control = decoded(
            model, tokenizer, encoded, readout=readout, graft=head, special=special
        )
        return decode_document(source.name, found, control, clusters=dataset.clusters)
    ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
    found, control = decoded(
        model, tokenizer, Texts.of([ids]), readout=readout, graft=head, special=special
    )
    return decode_document(
        source.name,
        found,
        control,
        vocabulary=vocabulary_of(tokenizer),
        text=(ids, decoded_ids(model, ids, readout=readout, graft=head)),
    )


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
