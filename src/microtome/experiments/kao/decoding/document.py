"""``microtome decode``: every depth of one model, on one text or on rows, without a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.errors import ModelError
from microtome.experiments.kao.decoding.measure import readout_for, texts_to_fit_on
from microtome.experiments.kao.decoding.plan import FIT, SHIPPED, ReadoutRequest
from microtome.experiments.kit.controlled_decoding import decode_with_control
from microtome.experiments.kit.wording import percent
from microtome.models.loading import load
from microtome.models.source import Source
from microtome.models.tokenizers import load_tokenizer
from microtome.observe import Texts, decode_document, decoded_ids, vocabulary_of
from microtome.observe.evaluation import encode_for, text_clusters
from microtome.tasks.data_spec import DataSpec
from microtome.tasks.reading.opening import open_data
from microtome.training.mlm.readout import FittedReadout, fit_readout, shipped_readout

Tell = Callable[[str], None]


def decoded_document(
    source: Source,
    data: DataSpec,
    *,
    text: str | None = None,
    readout: ReadoutRequest,
    special: bool = False,
    max_length: int | None = None,
    device: str = "cpu",
    allow_pickle: bool = False,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """What ``microtome decode --json`` prints, but for the model's name as the user wrote it.

    ``text`` is decoded where it is given, and shown at every depth; else the rows of ``data``.
    ``tell`` takes lines about progress.

        decoded_document(
            resolve("nano-bert"), DataSpec(), text="The cat sat.", readout=ReadoutRequest()
        )
    """
    readout.check(data)
    dataset = None if text is not None else open_data(data)
    if dataset is not None:
        tell(f"decoding {len(dataset):,} rows of {dataset.task.name}")
    model = load(source, device=device, allow_pickle=allow_pickle)
    tokenizer = load_tokenizer(source)
    if tokenizer is None:
        raise ModelError(
            f"{source.name} has no tokenizer", "put tokenizer.json next to the weights"
        )
    head = _head(model, tokenizer, readout, data, tell)
    reader = readout_for(model, readout.name, donor=readout.graft, head=head)
    if dataset is not None:
        encoded = encode_for(model, tokenizer, dataset, max_length=max_length)
        decoding, control = decode_with_control(model, tokenizer, encoded, reader, special=special)
        clusters = text_clusters(dataset, encoded)
        return decode_document(source.name, decoding, control, clusters=clusters)
    ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
    texts = Texts.of([ids])
    decoding, control = decode_with_control(model, tokenizer, texts, reader, special=special)
    by_depth = decoded_ids(model, ids, readout=reader)
    return decode_document(
        source.name, decoding, control, vocabulary=vocabulary_of(tokenizer), text=(ids, by_depth)
    )


def _head(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    readout: ReadoutRequest,
    data: DataSpec,
    tell: Tell,
) -> FittedReadout | None:
    """The head that was fitted to ``model``, now or before; None where another one is asked for."""
    if readout.name == SHIPPED:
        return shipped_readout(model)
    if readout.name != FIT:
        return None
    texts = texts_to_fit_on(data, readout.fit_text)
    tell(f"fitting a readout on {len(texts):,} texts")
    head = fit_readout(model, tokenizer, texts, steps=readout.fit_steps)
    tell(
        f"it gives back {percent(head.facts.heldout_accuracy)} of the masked tokens of held-out"
        f" text, the commonest token {percent(head.facts.unigram)}"
    )
    return head
