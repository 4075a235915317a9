"""Go on from a masked LM that exists: its shape, its vocabulary and its weights, on other text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.models import Source, fetched, load, load_tokenizer, provenance_of, resolve
from microtome.models.front_matter import learning_rate_of
from microtome.training.pretrain import FAMILIES
from microtome.training.pretraining.scaling import restore_embeddings_

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.training.pretrain import PretrainRequest

RECORD = "pretraining.json"
WANTED = ("[CLS]", "[SEP]", "[MASK]")


def shaped_as_start(request: PretrainRequest) -> PretrainRequest:
    """The request with the family, shape and vocabulary of the model that it starts from."""
    if request.start is None:
        return request
    model = start_model(request.start)
    family = adapt(model)
    tokenizer = start_tokenizer(request.start)
    config, provenance = model.config, provenance_of(model)
    assert provenance is not None  # it was loaded
    positions = int(config.max_position_embeddings)
    return replace(
        request,
        family=family.name,
        layers=family.shape.n_layers,
        width=family.shape.width,
        heads=family.shape.n_heads,
        embedding=int(family.word_embeddings.shape[1]),
        vocabulary=int(config.vocab_size),
        positions=positions,
        length=min(request.length, positions),
        lowercase=bool(getattr(tokenizer, "do_lower_case", False)),
        grow=False,
        warm_start=False,
        start_hash=provenance.content_hash,
        finetuning_rate=learning_rate_of(provenance.path) or rate_for(family.shape.width),
    )


def rate_for(width: int) -> float:
    """A learning rate for fine-tuning, between what suits width 128 (3e-4) and 768 (2e-5)."""
    return float(f"{3e-4 * (128 / width) ** 1.5:.0e}")


def start_model(name: str) -> PreTrainedModel:
    """The model to go on from, as training wants it; one without a masked-LM head is refused."""
    model = load(name, head="mlm")
    provenance = provenance_of(model)
    assert provenance is not None  # it was loaded
    if provenance.family not in FAMILIES:
        raise RequestError(f"{name} is of the family {provenance.family}, bert or albert wanted")
    if provenance.head_is_fresh:
        raise RequestError(
            f"{name} has no masked-LM head to go on with",
            "give a masked LM, or pre-train one without --from",
        )
    restore_embeddings_(model)
    return model


def start_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Its tokenizer; one without [CLS], [SEP] and [MASK] is refused."""
    tokenizer = load_tokenizer(name)
    if tokenizer is None:
        raise RequestError(f"{name} has no tokenizer", "put its tokenizer.json into the folder")
    missing = [token for token in WANTED if token not in tokenizer.get_vocab()]
    if missing:
        raise RequestError(f"the tokenizer of {name} has no {missing[0]}, which rows are made with")
    return tokenizer


def start_pieces(name: str) -> Tokenizer:
    """What turns text into ids: whole texts, whatever length the tokenizer cuts at otherwise."""
    pieces: Tokenizer = start_tokenizer(name).backend_tokenizer
    pieces.no_truncation()
    pieces.no_padding()
    return pieces


def start_record(request: PretrainRequest) -> dict[str, Any] | None:
    """For the card: the model that it starts from, with its own recipe where it tells one."""
    if request.start is None:
        return None
    source: Source = fetched(resolve(request.start))
    assert source.path is not None
    file = source.path / RECORD
    own = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    return {"name": source.path.name, "content_hash": request.start_hash, "record": own}
