"""The model card of a pre-trained model: data, recipe, hashes, curves, licence; no torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_TEMPLATE = """\
---
library_name: transformers
pipeline_tag: fill-mask
{license}learning_rate: {finetuning[learning_rate]:g}
tags:
- microtome
- {recipe[family]}
---
# {name}

A small {recipe[family]} encoder with its masked-LM head: {recipe[layers]} {counted}, width
{recipe[width]}, {recipe[heads]} heads, {recipe[vocabulary]:,} word pieces{case},
{recipe[positions]} positions. {origin}

## Held-out text
Masked top-1 accuracy on {heldout[n]:,} masked tokens of text never trained on (15 % of the tokens,
rows of {heldout[length]}): **{heldout[accuracy]:.1%}** where all are shown as [MASK],
{heldout[accuracy_mixed]:.1%} with 80/10/10 masking. Always guessing the commonest token:
{heldout[unigram]:.1%}. Loss {heldout[loss]:.3f}.

Decoding: the share of tokens that the masked-LM head reads back from the state at each depth, and
the same with fresh weights in all layers (control).

| depth | accuracy | control |
|---|---|---|
{depths}

## Fine-tuning
A learning rate of about {finetuning[learning_rate]:g} suits this width.

## Data
{files}

{text[n_training_tokens]:,} tokens of training text, {text[n_heldout_tokens]:,} held out (the last
documents of the last file). The text isn't part of this folder. {text[unknown_share]:.2%} of the
training tokens are [UNK].

## Recipe
| rows × length | masked | steps | tokens |
|---|---|---|---|
{stages}

{result[tokens]:,} tokens in {hours:.1f} hours of training. Fresh masks in every step: 80 % [MASK],
10 % random, 10 % shown; a quarter of the rows has a second segment, and every second row begins
anywhere in the position table. AdamW, peak rate {recipe[learning_rate]:g}, a tenth of the steps up,
then linearly down to 0. No dropout while pre-training. Seed {recipe[seed]}. {head_start}

| step | tokens | training loss | held-out accuracy |
|---|---|---|---|
{log_rows}

## Hashes (sha256)
| what | hash |
|---|---|
| weights | `{weights_sha256}` |
| vocabulary | `{text[vocabulary_sha256]}` |
| training tokens | `{text[training_sha256]}` |
| held-out tokens | `{text[heldout_sha256]}` |

## Licence
{license_text}
"""

_HEAD_START = """\
Before the first step
word embeddings are set to the leading singular vectors of the training text's neighbour statistics
(positive pointwise mutual information at distances 1 and 2), the decoder's bias to log frequencies,
positions to sinusoids, and four heads of the first layer to look at neighbours."""


def card(name: str, record: Mapping[str, Any]) -> str:
    """The text of README.md, from the record (``pretraining.json``) in the same folder."""
    recipe, result, log = record["recipe"], record["result"], record["log"]
    every = max(1, -(-len(log) // 20))  # about 20 lines, evenly spread, the last one among them
    license_id, start = recipe["license"], record["start"]
    return _TEMPLATE.format(
        **record,
        name=name,
        heldout=result["heldout"],
        license=f"license: {license_id}\n" if license_id else "",
        license_text=f"`{license_id}`." if license_id else "None was named.",
        origin=_origin(start),
        counted="applications of one layer" if recipe["family"] == "albert" else "layers",
        case=", lower case" if recipe["lowercase"] else "",
        hours=result["seconds"] / 3600,
        head_start=_HEAD_START if start is None else "",
        files="\n".join(
            "- `{name}`: {n_characters:,} characters, text sha256 `{sha256}`".format(**file)
            for file in record["text"]["files"]
        ),
        depths=_rows("| {depth} | {accuracy:.3f} | {control:.3f} |", result["depths"]),
        stages=_rows(
            "| {n_rows} × {length} | {masked:.0%} | {steps:,} | {tokens:,} |",
            (
                s | {"tokens": s["steps"] * s["n_rows"] * s["length"]}
                for s in recipe["plan"]["stages"]
            ),
        ),
        log_rows=_rows(
            "| {step:,} | {tokens:,} | {loss:.3f} | {heldout[accuracy]:.3f} |",
            log[::-1][::every][::-1],
        ),
    )


def _origin(start: Mapping[str, Any] | None) -> str:
    """From scratch, or from which model."""
    if start is None:
        return "Made from scratch by `microtome pretrain`."
    return (
        f"Made by `microtome pretrain` from `{start['name']}`\n"
        f"(content sha256 `{start['content_hash']}`), whose card says how it was made."
    )


def _rows(template: str, rows: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(template.format(**row) for row in rows)
