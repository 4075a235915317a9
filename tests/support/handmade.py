"""Checkpoints with one head whose attention is set by hand (`from handmade import …`).

Layer 1, head 2 attends to what the test wants; all other weights are small and random.
"""

from __future__ import annotations

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from support.tiny import tiny_model

LAYER, HEAD, WIDTH, N_HEADS = 1, 2, 32, 4
ROWS = slice(HEAD * WIDTH // N_HEADS, (HEAD + 1) * WIDTH // N_HEADS)
FREQUENCIES = np.pi * np.array([1.0, 0.61, 0.37, 0.23])


def word_tokenizer(texts):
    """Every word of the texts is one token."""
    inner = Tokenizer(models.WordLevel({}, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = {
        word for text in texts for word, _ in inner.pre_tokenizer.pre_tokenize_str(text.lower())
    }
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: index for index, word in enumerate([*specials, *sorted(words)])}
    inner.model = models.WordLevel(vocabulary, unk_token="[UNK]")
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=60,
    )  # fmt: skip


def _quiet_model(n_tokens, head):
    """Nothing is written into the states, so every layer sees the embeddings."""
    names = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    model = tiny_model(
        "bert", head, std=0.1, vocab_size=n_tokens, max_position_embeddings=64,
        **(names if head == "classification" else {}),
    )  # fmt: skip
    with torch.no_grad():
        for layer in model.base_model.encoder.layer:
            for part in (layer.attention.output.dense, layer.output.dense):
                part.weight.zero_()
                part.bias.zero_()
            for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                norm.weight.fill_(1.0)
                norm.bias.zero_()
        embeddings = model.base_model.embeddings
        embeddings.LayerNorm.weight.fill_(1.0)
        embeddings.LayerNorm.bias.zero_()
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
    return model


def attends_to_words(folder, texts, wanted, *, head="none"):
    """Its head attends, from everywhere, to the words in ``wanted`` (lower case)."""
    tokenizer = word_tokenizer(texts)
    model = _quiet_model(len(tokenizer), head)
    attention = model.base_model.encoder.layer[LAYER].attention.self
    with torch.no_grad():
        words = model.base_model.embeddings.word_embeddings.weight
        words[:, :2] = 0.0
        for word, index in tokenizer.get_vocab().items():
            if word in wanted:
                words[index, 0], words[index, 1] = 3.0, -3.0
        attention.query.weight[ROWS] = 0.0
        attention.key.weight[ROWS] = 0.0
        attention.query.bias[ROWS] = 0.0
        attention.query.bias[ROWS.start] = 5.0
        attention.key.weight[ROWS.start, 0] = 5.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def attends_to_previous(folder, texts, *, head="none"):
    """Its head attends to the token before, by position alone."""
    tokenizer = word_tokenizer(texts)
    model = _quiet_model(len(tokenizer), head)
    embeddings = model.base_model.embeddings
    attention = model.base_model.encoder.layer[LAYER].attention.self
    angles = np.arange(64)[:, None] * FREQUENCIES  # (positions, 4)
    waves = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(64, 8)
    with torch.no_grad():
        embeddings.word_embeddings.weight[:, :8] = 0.0
        embeddings.position_embeddings.weight[:, :8] = torch.from_numpy(waves).float()
        turn = torch.zeros(8, 8)
        for pair, frequency in enumerate(FREQUENCIES):  # turns position i into position i − 1
            own = slice(2 * pair, 2 * pair + 2)
            c, s = np.cos(frequency), np.sin(frequency)
            turn[own, own] = torch.tensor([[c, s], [-s, c]], dtype=torch.float32)
        for part in (attention.query, attention.key):
            part.weight[ROWS] = 0.0
            part.bias[ROWS] = 0.0
        attention.query.weight[ROWS, :8] = 8.0 * turn
        attention.key.weight[ROWS, :8] = 8.0 * torch.eye(8)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
