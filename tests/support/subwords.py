"""Byte-level BPE and Unigram tokenizers, trained here on a few sentences, and checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AlbertTokenizer,
    DebertaV2Tokenizer,
    PreTrainedTokenizerBase,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

from support.tiny import tiny_model

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind at all.",
    "A microtome cuts thin slices; every slice is looked at, and some are put aside.",
    "Encoders are made of layers, layers of heads, and heads attend to tokens.",
    "Naïve cafés in Zürich serve crème brûlée, jalapeños and smörgåsbord.",
    "東京 は 大きい です。 Ωμέγα και άλφα. Привет, мир!",
    "Numbers like 3.14159, 2,718 and 1,000,000 are written in many ways.",
    "Quickly, slowly, happily, sadly: adverbs often end in the same letters.",
    "Walking, talking, singing, dancing; walked, talked, danced; walker, talker, dancer.",
]
TEXTS = [CORPUS[1], "Heads attend to slices.", "café Привет ☃", "ж"]  # two characters unknown
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def byte_level_bpe() -> PreTrainedTokenizerBase:
    """RoBERTa's tokenizer: all 256 bytes, and merges."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=list(ROBERTA), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(CORPUS, trainer)
    model = json.loads(made.to_str())["model"]
    return RobertaTokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])


def unigram(kind: type, specials: tuple[str, ...], unknown: str) -> PreTrainedTokenizerBase:
    """A SentencePiece-like tokenizer of one of transformers' classes."""
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=list(specials), unk_token=unknown, show_progress=False
    )
    made.train_from_iterator(CORPUS * 3, trainer)
    pieces = json.loads(made.to_str())["model"]["vocab"]
    return kind(vocab=[tuple(pair) for pair in pieces])


TOKENIZERS = {
    "roberta": byte_level_bpe,
    "xlm-roberta": lambda: unigram(XLMRobertaTokenizer, ROBERTA, "<unk>"),
    "albert": lambda: unigram(
        AlbertTokenizer, ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), "<unk>"
    ),
    "deberta-v2": lambda: unigram(
        DebertaV2Tokenizer, ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"), "[UNK]"
    ),
}
"""A tokenizer that isn't WordPiece, by the family that has one like it."""


def save_with_subwords(folder: Path, family: str, head: str = "mlm") -> Path:
    """A tiny checkpoint with such a tokenizer, and three embeddings more than it has tokens."""
    tokenizer = TOKENIZERS[family]()
    sizes = {"vocab_size": len(tokenizer) + 3, "pad_token_id": tokenizer.pad_token_id}
    tiny_model(family, head, **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
