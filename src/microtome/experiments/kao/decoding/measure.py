"""The trials of decoding: a curve over depths, the last states of deeper models, a fitted head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from microtome.edits import parse
from microtome.experiments.kao.decoding.plan import FIT, FIT_TEXT, GRAFT, SHIPPED
from microtome.experiments.kit.controlled_decoding import decode_with_control, random_blocks
from microtome.experiments.kit.subject import MODEL
from microtome.experiments.kit.trial_inputs import (
    data_of,
    load_with_tokenizer,
    opened_model,
    opened_rows,
)
from microtome.families import adapt
from microtome.models.loading import load
from microtome.observe import (
    Readout,
    decoded_ids,
    depth_rows,
    fitted_head,
    readout_of,
    vocabulary_of,
)
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.runs import Context, Result
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.reading.opening import open_data, open_training
from microtome.training.mlm.readout import (
    FittedReadout,
    fit_readout,
    load_readout,
    shipped_readout,
)

HEAD = "readout"  # the folder within a fit's checkpoint
MOST_FIT_ROWS = 20_000


def decode(request: Mapping[str, Any], context: Context) -> Result:
    """Token accuracy at every depth, and what each depth makes of the first text."""
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    readout = trial_readout(request, context, model)
    decoding, control = decode_with_control(
        model, tokenizer, encoded, readout, special=request["special"]
    )
    vocabulary = vocabulary_of(tokenizer)
    first = encoded.row(0).tolist()
    segments = None if encoded.segments is None else encoded.segments[: len(first)].tolist()
    sentences = decoded_ids(model, first, readout=readout, segments=segments)
    rows = [
        {
            "checkpoint": request["checkpoint"],
            "layers": decoding.n_depths - 1,
            "edit": "",
            **row,
            "readout": decoding.readout,
            "n": decoding.n_tokens,
            "n_first": decoding.n_first,
            "input": " ".join(map(vocabulary.token, first)),
            "decoded": " ".join(map(vocabulary.token, best)),
        }
        for row, best in zip(
            depth_rows(decoding, control, clusters=text_clusters(dataset, encoded)),
            sentences,
            strict=True,
        )
    ]
    return Result(rows=rows, summary={"last depth": rows[-1]["accuracy"]})


def decode_deeper(request: Mapping[str, Any], context: Context) -> Result:
    """The last state of deeper models: the first layers duplicated, or a shared one applied on."""
    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    readout = trial_readout(request, context, model)
    layers = request["layers"]
    edit = parse(f"extend({layers[-1]})")
    decoding, control = decode_with_control(
        edit(model), tokenizer, encoded, readout, special=request["special"],
        control=edit(random_blocks(model)), depths=layers,
    )  # fmt: skip
    rows = [
        {
            "checkpoint": request["checkpoint"],
            "layers": row["depth"],
            "edit": f"extend({row['depth']})",
            **row,
            "readout": decoding.readout,
            "n": decoding.n_tokens,
            "n_first": decoding.n_first,
        }
        for row in depth_rows(decoding, control, clusters=text_clusters(dataset, encoded))
    ]
    return Result(rows=rows, summary={f"{layers[-1]} layers": rows[-1]["accuracy"]})


def fit_head(request: Mapping[str, Any], context: Context) -> Result:
    """Train an MLM head on the last states of text that isn't measured; the body is frozen."""
    model, tokenizer = load_with_tokenizer(Path(context.where[MODEL]), device=context.device)
    place = context.where.get(FIT_TEXT)
    texts = texts_to_fit_on(data_of(request, context), None if place is None else Path(place))
    head = fit_readout(model, tokenizer, texts, steps=request["steps"], seed=request["seed"])
    head.save(context.scratch / HEAD)
    return Result(summary={"held-out accuracy": head.facts.heldout_accuracy}, checkpoint=True)


def texts_to_fit_on(measured: DataSpec, fit_text: Path | None) -> list[str]:
    """Texts to fit a head on: a file named for it, else the training rows of what is measured.

    At most 20,000 rows are taken; a pair is two texts.
    """
    dataset = open_training(measured)[0] if fit_text is None else open_data(DataSpec(path=fit_text))

    def texts() -> Iterator[str]:
        for row in dataset.limit(MOST_FIT_ROWS).rows():
            yield from (text for text in (row.text, row.pair) if text)

    return list(islice(texts(), 2 * MOST_FIT_ROWS))


def trial_readout(request: Mapping[str, Any], context: Context, model: PreTrainedModel) -> Readout:
    """What reads the states of ``model`` in a trial."""
    head = None
    if request["readout"] in (FIT, SHIPPED):
        # Fitted to the subject, whatever was fine-tuned or edited since.
        owner = load(context.where[MODEL], device=context.device)
        head = shipped_readout(owner) if request["readout"] == SHIPPED else _fitted(owner, context)
    return readout_for(model, request["readout"], donor=context.where.get(GRAFT), head=head)


def _fitted(owner: PreTrainedModel, context: Context) -> FittedReadout:
    """The head that a needed trial has fitted to ``owner``."""
    folders = [need.checkpoint / HEAD for need in context.needs.values() if need.checkpoint]
    return load_readout(owner, next(folder for folder in folders if folder.is_dir()))


def readout_for(
    model: PreTrainedModel,
    name: str,
    *,
    donor: str | Path | None = None,
    head: FittedReadout | None = None,
) -> Readout:
    """What reads the states of ``model``: a fitted ``head``, the ``donor``'s, or one by ``name``.

    ``name`` is ``auto``, ``mlm`` or ``tied``; for ``fit`` and ``shipped`` the head must be given.
    ``donor`` is a model whose MLM head is grafted on.
    """
    if head is not None:
        return fitted_head(adapt(model), head.transform, head.decoder)
    graft = None if donor is None else load(donor, head="mlm", device=str(model.device))
    return readout_of(adapt(model), name, graft=graft)
