"""Go on from a masked LM that exists: its shape, its vocabulary and its weights, on other text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.models import fetched, load, load_tokenizer, provenance_of, resolve
from microtome.models.front_matter import learning_rate_of, license_of
from microtome.training.pretrain import FAMILIES
from microtome.training.pretraining.building import token_ids
from microtome.training.pretraining.scaling import restore_embeddings_

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.training.pretrain import PretrainRequest

WANTED = ("[CLS]", "[SEP]", "[MASK]")


def shaped_as_start(request: PretrainRequest) -> PretrainRequest:
    """The request with the family, shape and vocabulary of the model that it starts from."""
    if request.start is None:
        return request
    model, tokenizer = start_model(request.start), start_tokenizer(request.start)
    family, provenance = adapt(model), provenance_of(model)
    assert provenance is not None  # it was loaded
    shape, positions = family.shape, int(model.config.max_position_embeddings)
    for stage in request.stages or ():
        if stage.layers != shape.n_layers or stage.length > positions:
            raise RequestError(
                f"a stage of {stage.layers} layers and rows of {stage.length} given, and"
                f" {request.start} has {shape.n_layers} layers and {positions} positions",
                "give stages that fit the start",
            )
    return replace(
        request,
        family=family.name,
        layers=shape.n_layers,
        width=shape.width,
        heads=shape.n_heads,
        embedding=int(family.word_embeddings.shape[1]),
        vocabulary=shape.vocabulary,
        positions=positions,
        length=min(request.length, positions),
        lowercase=bool(getattr(tokenizer, "do_lower_case", False)),
        grow=False,
        warm_start=False,
        license=request.license or license_of(provenance.path) or "",
        start_hash=provenance.content_hash,
        finetuning_rate=learning_rate_of(provenance.path),
    )


def start_model(name: str) -> PreTrainedModel:
    """The model to go on from, as training wants it; one without a masked-LM head is refused."""
    model = load(name, head="mlm")
    provenance = provenance_of(model)
    assert provenance is not None  # it was loaded
    if provenance.family not in FAMILIES:
        raise RequestError(
            f"{name} is of the family {provenance.family}, bert or albert wanted",
            "give a model of one of these",
        )
    if provenance.head_is_fresh:
        raise RequestError(
            f"{name} has no masked-LM head to go on with",
            "give a masked LM, or pre-train one without --from",
        )
    family = adapt(model)
    if family.mlm_decoder().weight.data_ptr() != family.word_embeddings.data_ptr():
        raise RequestError(
            f"the head of {name} has a decoder of its own, and one tied to the word embeddings was"
            " wanted",
            "give a model with tie_word_embeddings",
        )
    restore_embeddings_(model)
    return model


def start_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Its tokenizer; one without [CLS], [SEP] and [MASK] among its first tokens is refused."""
    tokenizer = load_tokenizer(name)
    if tokenizer is None:
        raise RequestError(f"{name} has no tokenizer", "put its tokenizer.json into the folder")
    missing = [token for token in WANTED if token not in tokenizer.get_vocab()]
    if missing:
        raise RequestError(
            f"the tokenizer of {name} has no {missing[0]}, which rows are made with",
            "give a model with a tokenizer like BERT's",
        )
    tokens = token_ids(tokenizer.backend_tokenizer)
    if 2 * tokens.first_ordinary > tokens.n_vocabulary:  # random words are drawn from behind them
        raise RequestError(
            f"the special tokens of {name} lie behind its words, before them wanted",
            "give a model with a tokenizer like BERT's",
        )
    return tokenizer


def start_pieces(name: str) -> Tokenizer:
    """What turns text into ids: whole texts, whatever length the tokenizer cuts at otherwise."""
    pieces: Tokenizer = start_tokenizer(name).backend_tokenizer
    pieces.no_truncation()
    pieces.no_padding()
    return pieces


def start_folder(name: str) -> Path:
    """Where the start's files lie."""
    path = fetched(resolve(name)).path
    assert path is not None  # it was loaded
    return path


def start_record(request: PretrainRequest) -> dict[str, Any] | None:
    """For the card: which model it starts from. A folder is named by its last part only."""
    if request.start is None:
        return None
    source = resolve(request.start)
    name = start_folder(request.start).resolve().name if source.kind == "folder" else source.name
    return {"name": name, "content_hash": request.start_hash}
