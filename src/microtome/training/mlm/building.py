"""The model that a pre-training starts from, fresh or one that exists, and its tokenizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, processors
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.models import fetched, load, load_tokenizer, provenance_of, resolve
from microtome.models.front_matter import learning_rate_of, license_of
from microtome.training.mlm.request import FAMILIES, PretrainRequest
from microtome.training.mlm.rows import Tokens
from microtome.training.mlm.text import SPECIAL_TOKENS

# As the families' own checkpoints have it: ALBERT's authors found that it was better without.
FINETUNING_DROPOUT = {"bert": 0.1, "albert": 0.0}
FULL_STOPS = (".", "。", "।", "۔")


def new_model(
    family: str, *, layers: int, width: int, heads: int, embedding: int, vocabulary: int,
    positions: int, seed: int,
) -> PreTrainedModel:  # fmt: skip
    """A masked-LM with fresh weights, in eval mode.

    It is trained like that, without dropout: no text is seen often enough to need it. The config's
    dropout is for fine-tuning.
    """
    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "max_position_embeddings": positions,
        "hidden_dropout_prob": FINETUNING_DROPOUT[family],
        "attention_probs_dropout_prob": FINETUNING_DROPOUT[family],
    }
    special = dict(zip(("pad", "unk", "cls", "sep", "mask"), range(5), strict=True))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if family == "bert":
            return BertForMaskedLM(BertConfig(**sizes, pad_token_id=special["pad"])).eval()
        config = AlbertConfig(
            **sizes,
            embedding_size=embedding,
            pad_token_id=special["pad"],
            bos_token_id=special["cls"],
            eos_token_id=special["sep"],
        )
        return AlbertForMaskedLM(config).eval()


def trained_parameters(model: PreTrainedModel) -> dict[str, nn.Parameter]:
    """Everything that the masked-LM loss reaches, by name (a pooler isn't)."""
    return {n: p for n, p in model.named_parameters() if p.requires_grad and "pooler" not in n}


def token_ids(tokenizer: Tokenizer) -> Tokens:
    """The ids that rows and masks need."""
    vocabulary = tokenizer.get_vocab()
    ids = {token: vocabulary[token] for token in SPECIAL_TOKENS if token in vocabulary}
    stops = [tokenizer.token_to_id(stop) for stop in FULL_STOPS]
    return Tokens(
        cls=ids["[CLS]"],
        sep=ids["[SEP]"],
        mask=ids["[MASK]"],
        first_ordinary=max(ids.values()) + 1,
        n_vocabulary=tokenizer.get_vocab_size(),
        full_stop=next((stop for stop in stops if stop is not None), None),
    )


def wrapped_tokenizer(
    tokenizer: Tokenizer, *, positions: int, lowercase: bool
) -> PreTrainedTokenizerBase:
    """The tokenizer as transformers knows it: [CLS] A [SEP] B [SEP], segments 0 and 1."""
    copied = Tokenizer.from_str(tokenizer.to_str())
    cls, sep = copied.token_to_id("[CLS]"), copied.token_to_id("[SEP]")
    copied.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    # transformers makes the normaliser anew from these when it loads the folder.
    return BertTokenizer(
        tokenizer_object=copied,
        do_lower_case=lowercase,
        strip_accents=False,
        model_max_length=positions,
    )


NEEDED = ("[CLS]", "[SEP]", "[MASK]")


def shaped_as_start(request: PretrainRequest) -> PretrainRequest:
    """The request with the family, shape and vocabulary of the model that it starts from."""
    if request.start is None:
        return request
    model, tokenizer = start_model(request.start), start_tokenizer(request.start)
    family, provenance = adapt(model), provenance_of(model)
    assert provenance is not None  # it was loaded
    shape, positions = family.shape, int(model.config.max_position_embeddings)
    for stage in request.stages or ():
        if stage.length > positions:
            raise RequestError(
                f"{request.start} has {positions} positions, got a stage with rows of"
                f" {stage.length} tokens",
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
        license=request.license or license_of(provenance.path) or "",
        start_hash=provenance.content_hash,
        finetuning_rate=learning_rate_of(provenance.path),
    )


def start_model(name: str) -> PreTrainedModel:
    """The model to start from; one without a masked-LM head to train on is refused."""
    model = load(name, head="mlm")
    provenance = provenance_of(model)
    assert provenance is not None  # it was loaded
    if provenance.family not in FAMILIES:
        raise RequestError(
            f"--from needs a bert or an albert, got {name} of the family {provenance.family}",
            "give a model of one of these families",
        )
    if provenance.head_is_fresh:
        raise RequestError(
            f"--from needs a model with its masked-LM head, got {name} without one",
            "give a masked LM, or pre-train one without --from",
        )
    family = adapt(model)
    if family.mlm_decoder().weight.data_ptr() != family.word_embeddings.data_ptr():
        raise RequestError(
            f"the decoder of {name} must be tied to the word embeddings, and it has its own",
            "give a model with tie_word_embeddings",
        )
    return model


def start_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """Its tokenizer; one without [CLS], [SEP] and [MASK] among its first tokens is refused."""
    tokenizer = load_tokenizer(name)
    if tokenizer is None:
        raise RequestError(f"{name} has no tokenizer", "put its tokenizer.json into the folder")
    missing = [token for token in NEEDED if token not in tokenizer.get_vocab()]
    if missing:
        raise RequestError(
            f"the tokenizer of {name} has no {missing[0]}, which rows are made with",
            "give a model with a tokenizer like BERT's",
        )
    tokens = token_ids(tokenizer.backend_tokenizer)
    if 2 * tokens.first_ordinary > tokens.n_vocabulary:  # random tokens are drawn from the rest
        raise RequestError(
            f"the special tokens of {name} must come before its words, and they come after",
            "give a model with a tokenizer like BERT's",
        )
    return tokenizer


def start_pieces(name: str) -> Tokenizer:
    """What turns text into ids: whole texts, at whatever length the tokenizer truncates."""
    pieces: Tokenizer = start_tokenizer(name).backend_tokenizer
    pieces.no_truncation()
    pieces.no_padding()
    return pieces


def start_folder(name: str) -> Path:
    """Where the start's files are."""
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
