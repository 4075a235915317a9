"""J7: embedding a corpus, against ``SentenceTransformer.encode`` (batches of 32, its own sorting).

Both start from texts, so tokenising counts.
"""

from __future__ import annotations

import numpy as np
from sentence_transformers import SentenceTransformer

from kit.measuring import Bar, Clock, Row, finish, options, peak_mb
from kit.workloads import embedder, long_texts, sentences
from microtome import load, load_tokenizer
from microtome.observe.embedding import embed

N_SHORT, N_LONG, LONG = 1024, 64, 256


def job(name: str, texts: list[str], least: float, clock: Clock, n_rounds: int) -> Row:
    folder = str(embedder())
    model, tokenizer = load(folder), load_tokenizer(folder)
    rival = SentenceTransformer(folder, device="cpu")
    rival.max_seq_length = LONG

    def theirs() -> np.ndarray:
        return rival.encode(texts, batch_size=32, show_progress_bar=False)

    def ours() -> np.ndarray:
        return embed(model, tokenizer, texts)

    difference = float(np.abs(ours() - theirs()).max())
    assert difference < 1e-4, f"the embeddings differ by {difference}"
    timed = clock.rounds({"ours": ours, "encode": theirs}, n_rounds)
    row = Row(
        f"J7 embedding {len(texts)} texts, minilm, {name}", timed["ours"],
        {"SentenceTransformer.encode": timed["encode"]}, peak_mb=peak_mb(ours),
        notes=f"error {difference:.1g}; {clock.how_often()}",
    )  # fmt: skip
    row.bars = [Bar("vs encode", row.ratios["SentenceTransformer.encode"], least)]
    return row


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    short, origin = sentences(N_SHORT)
    rows = [
        job(f"sentences of {origin}", short, 1.3, clock, given.rounds),
        job(f"{LONG} tokens", long_texts(N_LONG, LONG), 1.0, clock, given.rounds),
    ]
    finish("observe_embedding", rows, given)


if __name__ == "__main__":
    main()
