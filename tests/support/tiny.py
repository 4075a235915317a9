"""Tiny random models, checkpoints and tokenizers of every family (`from tiny import tiny_model`).

The weights are scaled up on purpose: at default initialisation (std 0.02) switching a head off
moves the logits by 1e-5, and a test would pass whether or not the edit did anything.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

logging.disable_progress_bar()  # tests read stderr, and bars would stand in it

FAMILY_TYPES = (
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "electra",
    "distilbert",
    "albert",
    "modernbert",
    "mpnet",
    "deberta-v2",
    "nomic_bert",
    "gte",
    "jina_embeddings_v3",
    "eurobert",
)
"""Every ``model_type`` that Microtome supports."""

ONLY_EAGER = ("mpnet", "deberta-v2")
"""Those for which transformers has no other attention."""

NO_ANSWERS = ("nomic_bert", "gte", "eurobert")
"""Families without a question-answering class in transformers."""

ANSWERING = tuple(family for family in FAMILY_TYPES if family not in NO_ANSWERS)

HEADS = ("mlm", "classification", "question-answering", "none")

KINDS_AND_HEADS = tuple(
    (family, head)
    for family in FAMILY_TYPES
    for head in HEADS
    if head != "question-answering" or family in ANSWERING
)
"""Every family with every head that transformers has a class for."""

AUTO_CLASSES = {
    "mlm": AutoModelForMaskedLM,
    "classification": AutoModelForSequenceClassification,
    "token-classification": AutoModelForTokenClassification,
    "question-answering": AutoModelForQuestionAnswering,
    "none": AutoModel,
}

N_LAYERS, N_HEADS, WIDTH, INNER, VOCABULARY, N_POSITIONS = 3, 4, 32, 48, 96, 64

# fmt: off
WORDS = [
    "the", "a", "cat", "dog", "bird", "sees", "likes", "eats", "big", "small", "red", "blue",
    "green", "quick", "slow", "and", "not", "no", "yes", "is", "was", "it", "he", "she", "they",
    "we", "you", "i", "house", "tree", "river", "car", "runs", "sleeps", "sings", "good", "bad",
    "very", "never", "always", "old", "new",
]
# fmt: on


def tiny_config(family: str, **changes: object) -> object:
    """The config of a tiny model; ``changes`` are config keys in the family's own names."""
    if family == "distilbert":
        sizes = {"n_layers": N_LAYERS, "n_heads": N_HEADS, "dim": WIDTH, "hidden_dim": INNER}
    else:
        sizes = {
            "num_hidden_layers": N_LAYERS,
            "num_attention_heads": N_HEADS,
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
        }
    settings = {"vocab_size": VOCABULARY, "max_position_embeddings": N_POSITIONS, **sizes}
    settings |= _special_ids(family) | _oddities(family) | changes
    return AutoConfig.for_model(family, **settings)


def tiny_model(
    family: str,
    head: str = "mlm",
    std: float = 0.3,
    seed: int = 0,
    attention: str = "sdpa",
    **config: object,
) -> PreTrainedModel:
    """A random model in eval mode whose weights are large enough for every edit to show."""
    made = AUTO_CLASSES[head].from_config(
        tiny_config(family, **config),
        attn_implementation="eager" if family in ONLY_EAGER else attention,
    )
    # from_config leaves this empty; a checkpoint on disk has it.
    made.config.architectures = [type(made).__name__]
    scale_up_(made, std=std, seed=seed)
    return made.eval()


@torch.no_grad()
def scale_up_(model: PreTrainedModel, *, std: float = 0.3, seed: int = 0) -> None:
    """Overwrite every parameter in place: matrices and biases N(0, std²), norm weights around 1."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        is_norm = parameter.dim() == 1 and name.endswith("weight")
        parameter.copy_(1 + 0.1 * noise if is_norm else std * noise)


def save_tiny(
    folder: Path,
    family: str = "bert",
    head: str = "mlm",
    *,
    dtype: torch.dtype = torch.float32,
    with_tokenizer: bool = False,
    max_shard_size: str = "5GB",
    **config: object,
) -> Path:
    """A tiny checkpoint on disk, written by plain transformers; gives the folder back."""
    tiny_model(family, head, **config).to(dtype).save_pretrained(
        folder, max_shard_size=max_shard_size
    )
    if with_tokenizer:
        tiny_tokenizer(family).save_pretrained(folder)
    return folder


def tiny_tokenizer(family: str = "bert") -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer made here: the family's special tokens, the words above, letters."""
    if _is_roberta(family):
        cls, pad, sep, unk, mask = specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    else:
        pad, unk, cls, sep, mask = specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = list(
        dict.fromkeys([*specials, *WORDS, *letters, "##s", "##ed", "##ing", ".", ",", "?"])
    )
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token=unk))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, vocabulary[cls]), (sep, vocabulary[sep])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=pad,
        unk_token=unk,
        cls_token=cls,
        sep_token=sep,
        mask_token=mask,
        model_max_length=N_POSITIONS - 4,
    )


def tiny_batch(
    family: str = "bert", *, seed: int = 0, lengths: tuple[int, ...] = (9, 5, 7)
) -> dict:
    """A padded batch of random tokens: ``input_ids`` and ``attention_mask``, (B, L)."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    ids = torch.randint(5, VOCABULARY, (len(lengths), longest), generator=generator)
    mask = torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]
    pad = _special_ids(family)["pad_token_id"]
    return {"input_ids": ids.where(mask, torch.tensor(pad)), "attention_mask": mask.long()}


def _is_roberta(family: str) -> bool:
    return family in ("roberta", "xlm-roberta", "camembert", "mpnet", "gte", "jina_embeddings_v3")


def _special_ids(family: str) -> dict[str, int]:
    if _is_roberta(family):
        return {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    if family == "eurobert":
        return {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "mask_token_id": 4}
    if family == "modernbert":
        return {
            "pad_token_id": 0,
            "cls_token_id": 2,
            "bos_token_id": 2,
            "sep_token_id": 3,
            "eos_token_id": 3,
        }
    return {"pad_token_id": 0}


def _oddities(family: str) -> dict[str, object]:
    """What makes a family different is made visible at this size, too."""
    if family in ("albert", "electra"):
        return {"embedding_size": 16}
    if family == "modernbert":
        # Layers 0 global, 1 and 2 sliding, with a window narrower than the test texts.
        return {"local_attention": 6, "global_attn_every_n_layers": 3}
    if family == "deberta-v2":
        # As in v3. From 4 tokens apart on, several distances share a bucket.
        return {
            "relative_attention": True,
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
        }
    if family == "eurobert":
        return {"num_key_value_heads": 2}  # two query heads share a key and a value
    return {}
