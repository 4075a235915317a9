"""The model and the tokenizer that pre-training starts from; and which weights Muon takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import PreTrainedModel

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.training.pretraining.rows import Tokens
from microtome.training.pretraining.text import SPECIAL_TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

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
    from transformers import AlbertConfig, AlbertForMaskedLM, BertConfig, BertForMaskedLM

    sizes: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "max_position_embeddings": positions,
        "hidden_dropout_prob": FINETUNING_DROPOUT.get(family, 0.0),
        "attention_probs_dropout_prob": FINETUNING_DROPOUT.get(family, 0.0),
    }
    special = dict(zip(("pad", "unk", "cls", "sep", "mask"), range(5), strict=True))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if family == "bert":
            return BertForMaskedLM(BertConfig(**sizes, pad_token_id=special["pad"])).eval()
        if family == "albert":
            config = AlbertConfig(
                **sizes,
                embedding_size=embedding,
                pad_token_id=special["pad"],
                bos_token_id=special["cls"],
                eos_token_id=special["sep"],
            )
            return AlbertForMaskedLM(config).eval()
    raise RequestError(f"family {family!r} given, bert or albert wanted")


def layer_matrices(model: PreTrainedModel) -> frozenset[str]:
    """The names of the weight matrices inside the layers."""
    prefix = f"{adapt(model).layers_path}."
    return frozenset(
        n for n, p in model.named_parameters() if n.startswith(prefix) and p.dim() == 2
    )


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
    from tokenizers import Tokenizer as Copy
    from tokenizers import processors
    from transformers import BertTokenizer

    own = Copy.from_str(tokenizer.to_str())
    cls, sep = own.token_to_id("[CLS]"), own.token_to_id("[SEP]")
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    # transformers makes the normaliser anew from these when it loads the folder.
    return BertTokenizer(
        tokenizer_object=own,
        do_lower_case=lowercase,
        strip_accents=False,
        model_max_length=positions,
    )
