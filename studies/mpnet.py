"""all-mpnet-base-v2, 12 layers of 768: each of its 144 heads off on STS-B pairs, and what it costs.

python studies/mpnet.py FOLDER [--pairs 200] [--plain 3]

FOLDER holds the checkpoint (sentence-transformers/all-mpnet-base-v2). ``make studies`` takes it
from MICROTOME_MPNET, and leaves the study out without it. Ours is one sweep; the plain loop is
transformers with one head's attention weights replaced by 1/L, in batches of 32 sorted by length.
A few of its passes are run, the embeddings compared, and their time multiplied: each costs the
same, whichever head is off. Times are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import AutoModel, PreTrainedModel

from commands import DATA
from microtome.families import adapt
from microtome.models import load, load_tokenizer
from microtome.observe import Texts, sweep
from microtome.observe.embedding import tokens_to_embed
from microtome.tasks import DataSpec, open_data

BATCH = 32
CLOSE = 1e-4


def plain_embeddings(
    model: PreTrainedModel, texts: Texts, off: tuple[int, int] | None = None
) -> np.ndarray:
    """Normed mean embeddings (n, D) by plain transformers, with one head uniform."""
    order = np.argsort(texts.lengths, kind="stable")
    made = np.empty((len(order), model.config.hidden_size), dtype=np.float32)
    for rows in np.array_split(order, max(1, len(order) // BATCH)):
        mask = (
            torch.arange(int(texts.lengths[rows].max()))
            < torch.tensor(texts.lengths[rows])[:, None]
        )
        ids = torch.full(mask.shape, model.config.pad_token_id)
        ids[mask] = torch.from_numpy(
            np.concatenate([texts.ids[texts.offsets[row] : texts.offsets[row + 1]] for row in rows])
        ).long()
        states = _states(model, ids, mask, off)
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        made[rows] = torch.nn.functional.normalize(means, dim=1).numpy()
    return made


def _states(
    model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, off: tuple[int, int] | None
) -> torch.Tensor:
    def replace(_module: torch.nn.Module, given: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        given[0][:, off[1]] = (mask / mask.sum(1, keepdim=True))[:, None]
        return given

    attention = model.encoder.layer[0 if off is None else off[0]].attention.attn
    hook = attention.dropout.register_forward_pre_hook(replace if off else lambda *_: None)
    with torch.inference_mode():
        states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    hook.remove()
    return states


def score(embeddings: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's correlation of cosines and labels; rows are the first texts, then the second."""
    one, other = np.split(embeddings, 2)
    return float(spearmanr((one * other).sum(1), gold).statistic)


def plain_passes(
    folder: Path, texts: Texts, heads: list[tuple[int, int]], n_passes: int
) -> tuple[dict[int, np.ndarray], float]:
    """The embeddings with a few of ``heads`` off, by place, and the median time of a pass."""
    model = AutoModel.from_pretrained(folder).eval()
    made, seconds = {}, []
    for place in np.linspace(0, len(heads) - 1, n_passes).round().astype(int).tolist():
        begun = time.process_time()
        made[place] = plain_embeddings(model, texts, heads[place])
        seconds.append(time.process_time() - begun)
        print(f"plain transformers, head {heads[place]} off: {seconds[-1]:.1f} s", flush=True)
    return made, float(np.median(seconds))


def study(folder: Path, stsb: Path, n_pairs: int, n_passes: int) -> None:
    """Sweep, compare, print."""
    dataset = open_data(DataSpec("stsb", stsb, limit=n_pairs))
    rows, gold = list(dataset.rows()), dataset.targets
    model, tokenizer = load(folder), load_tokenizer(folder)
    family = adapt(model)
    pairs = [row.text for row in rows] + [row.pair or "" for row in rows]
    texts = tokens_to_embed(family, tokenizer, pairs)
    shape = family.shape
    heads = [(layer, head) for layer in range(shape.n_layers) for head in range(shape.n_heads)]
    plain, one_pass = plain_passes(folder, texts, heads, n_passes)
    begun = time.process_time()
    swept = sweep(model, texts, [f"{layer}.{head}" for layer, head in heads])
    ours, loop = time.process_time() - begun, one_pass * (len(heads) + 1)
    whole = score(swept.baseline, gold)
    off = max(float(np.abs(swept.logits[place] - made).max()) for place, made in plain.items())
    effect = max(float(np.abs(swept.baseline - made).max()) for made in plain.values())
    print(f"{len(rows)} pairs, {len(texts.ids)} tokens; cosine Spearman {whole:.4f}")
    print(f"sweep {ours:.0f} s, plain loop {loop:.0f} s: {loop / ours:.1f} times")
    print(f"embeddings differ by {off:.1g}; a head moves them by up to {effect:.2g}")
    changes = sorted(
        (score(made, gold) - whole, f"{layer}.{head}")
        for made, (layer, head) in zip(swept.logits, heads, strict=True)
    )
    shown = [*changes[:5], *changes[-5:]]
    print("lowest and highest changes: " + ", ".join(f"{name} {by:+.4f}" for by, name in shown))
    if off > CLOSE:
        sys.exit(f"the embeddings differ by {off}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--plain", type=int, default=3, help="passes of the plain loop")
    given = parser.parse_args()
    stsb = DATA / "glue" / "STS-B"
    if given.folder is None or not given.folder.exists() or not stsb.exists():
        print("mpnet: left out, it needs the checkpoint's folder and STS-B")
        return
    torch.set_num_threads(1)
    study(given.folder, stsb, given.pairs, given.plain)


if __name__ == "__main__":
    main()
