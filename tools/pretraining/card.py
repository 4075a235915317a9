"""The card of a model that was grown in depth, from its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEMPLATE = """\
---
library_name: transformers
pipeline_tag: fill-mask
{license}learning_rate: {rate:g}
tags:
- microtome
- {family}
---
# {name}

A small {family} encoder with its masked-LM head: {layers} {counted}, width {width}, {heads} heads,
{vocabulary:,} word pieces{case}, {positions} positions. {origin}

## Held-out text
Masked top-1 accuracy on {n:,} masked tokens of text never trained on (15 % of the tokens, rows of
{length}): **{accuracy:.1%}** behind [MASK], {mixed:.1%} with 80/10/10 masking. Always guessing the
commonest token: {unigram:.1%}. Loss {loss:.3f}.

Decoding: the share of tokens that the masked-LM head reads back from the state at each depth, and
the same with fresh weights in all blocks (control).

{depths}

## Fine-tuning
A learning rate of about {rate:g} suits this width.

## Data
{files}

{training:,} tokens of training text, {heldout:,} held out (the last documents of the last file).
The text isn't part of this folder.{unknown}{extra_files}

## Recipe
{stages}

{tokens:,} tokens in {hours:.1f} hours of training. Fresh masks in every step: 80 % [MASK], 10 %
random, 10 % shown; a quarter of the rows has a second segment, and every second row begins anywhere
in the position table. {summaries}{extra}Muon (rate {matrix_rate:g}, decay {matrix_decay:g}) for the
matrices of the layers, AdamW (rate {other_rate:g}) for the rest; {warm_up} steps of warm-up, linear
decay over the last {decay}. {stacking}{candidates}No dropout while pre-training. Seed {seed}.
Stored with input embeddings as small as fresh ones; the norm before the decoder undoes it.
{start}

| step | layers | tokens | training loss | held-out accuracy |
|---|---|---|---|---|
{log}

{section}## Hashes (sha256)
| what | hash |
|---|---|
| weights | `{weights_hash}` |
| vocabulary | `{vocabulary_hash}` |
| training tokens | `{training_hash}` |
| held-out tokens | `{heldout_hash}` |

## Licence
{license_text}
"""

_STACKING = "Deeper models begin as the shallower one stacked on itself. "
_CANDIDATES = """\
Stages with candidates compare the true token with that
many others instead of all. """


_START = """\
Before the first step word embeddings are set to the leading singular vectors of the training text's
neighbour statistics (positive pointwise mutual information at distances 1 and 2), the decoder's
bias to log frequencies, positions to sinusoids, and four heads of the first layer to look at
neighbours."""


def card(name: str, record: Mapping[str, Any], *, then: str = "", section: str = "") -> str:
    """The text of README.md, from the record in the same folder.

    `then` and `section` tell what was done afterwards: in a sentence, and at length.
    """
    recipe, text, result = record["recipe"], record["text"], record["result"]
    heldout, plan = result["heldout"], recipe["plan"]
    license_id = recipe["license"]
    return _TEMPLATE.format(
        name=name,
        license=f"license: {license_id}\n" if license_id else "",
        license_text=f"`{license_id}`." if license_id else "None was named.",
        rate=record["finetuning"]["learning_rate"],
        origin=_origin(record.get("start")) + then,
        section=section,
        start=_START if recipe["warm_start"] else "",
        stacking=_STACKING if len({s["layers"] for s in plan["stages"]}) > 1 else "",
        candidates=_CANDIDATES if any(s["candidates"] for s in plan["stages"]) else "",
        counted="applications of one layer" if recipe["family"] == "albert" else "layers",
        case=", lower case" if recipe["lowercase"] else "",
        n=int(heldout["n"]),
        length=heldout["length"],
        accuracy=heldout["accuracy"],
        mixed=heldout["accuracy_mixed"],
        unigram=heldout["unigram"],
        loss=heldout["loss"],
        depths=_depths(result["depths"]),
        files="\n".join(map(_file, text["files"])),
        extra_files=_extra_files(text.get("extra_files", ())),
        training=text["n_training_tokens"],
        unknown=_unknown(text.get("unknown_share")),
        heldout=text["n_heldout_tokens"],
        stages=_stages(plan["stages"]),
        tokens=result["tokens"],
        hours=result["seconds"] / 3600,
        log="\n".join(_log_rows(record["log"], plan["stages"])),
        weights_hash=record["weights_sha256"],
        vocabulary_hash=text["vocabulary_sha256"],
        training_hash=text["training_sha256"],
        heldout_hash=text["heldout_sha256"],
        extra=_extra(plan["stages"]),
        summaries=_summaries(recipe["summary_words"]),
        warm_up=plan["warm_up"],
        decay=plan["decay"],
        **{key: recipe[key] for key in (
            "family", "layers", "width", "heads", "vocabulary", "positions", "matrix_rate",
            "matrix_decay", "other_rate", "seed",
        )},
    )  # fmt: skip


def _origin(start: Mapping[str, Any] | None) -> str:
    """From scratch, or from which model."""
    if start is None:
        return "Made from scratch by `microtome pretrain`."
    return (
        f"Made by `microtome pretrain` from `{start['name']}`\n"
        f"(content sha256 `{start['content_hash']}`), whose card says how it was made."
    )


def _unknown(share: float | None) -> str:
    """How much of the text the vocabulary doesn't know; records of old don't say."""
    return "" if share is None else f" {share:.2%} of the training tokens are [UNK]."


def _extra_files(files: Sequence[Mapping[str, Any]]) -> str:
    """The second text, where there was one."""
    if not files:
        return ""
    return "\n\nExtra text, of which nothing was held out:\n\n" + "\n".join(map(_file, files))


def _summaries(n_words: int) -> str:
    """What [CLS] was asked for."""
    return f"[CLS] must name {n_words} tokens of its row. " if n_words else ""


def _extra(stages: Sequence[Mapping[str, Any]]) -> str:
    """Which share of the rows came from the second text, where there was one."""
    shares = {f"{s['extra']:.1%} at {s['layers']} layers": None for s in stages if s["extra"]}
    return f"Rows from the extra text: {', '.join(shares)}. " if shares else ""


def _depths(depths: Sequence[Mapping[str, Any]]) -> str:
    rows = [f"| {d['depth']} | {d['accuracy']:.3f} | {d['control']:.3f} |" for d in depths]
    return "\n".join(["| depth | accuracy | control |", "|---|---|---|", *rows])


def _stages(stages: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f"| {s['layers']} | {s['n_rows']} × {s['length']} | {s['masked']:.0%} "
        f"| {s['candidates'] or 'all'} | {s['rate']:g} | {s['steps']:,} "
        f"| {s['steps'] * s['n_rows'] * s['length']:,} |"
        for s in stages
    ]
    names = "| layers | rows × length | masked | candidates | rate | steps | tokens |"
    return "\n".join([names, "|---|---|---|---|---|---|---|", *rows])


def _file(file: Mapping[str, Any]) -> str:
    return (
        f"- `{file['name']}`: {file['n_characters']:,} characters, text sha256 `{file['sha256']}`"
    )


def _layers_at(step: int, stages: Sequence[Mapping[str, Any]]) -> int:
    """How deep the model was after so many steps."""
    for stage in stages:
        if step <= stage["steps"]:
            break
        step -= stage["steps"]
    return int(stage["layers"])


def _log_rows(
    lines: Sequence[Mapping[str, Any]], stages: Sequence[Mapping[str, Any]], *, n: int = 20
) -> list[str]:
    """About `n` lines of the log, evenly spread, the last one among them."""
    every = max(1, -(-len(lines) // n))
    shown = lines[::-1][::every][::-1]
    return [
        f"| {line['step']:,} | {_layers_at(line['step'], stages)} | {line['tokens']:,} "
        f"| {line['loss']:.3f} | {line['heldout']['accuracy']:.3f} |"
        for line in shown
    ]
