"""The fresh model that pre-training starts from, and its tokenizer."""

from __future__ import annotations

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
