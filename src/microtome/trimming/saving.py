"""The chosen cut as a folder: its surgery proven, its training recorded, its scores on its card."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from microtome import files
from microtome.edits import Edits, Vocabulary, parse
from microtome.experiments.field.trim.healing import RECORD
from microtome.models import load, save
from microtome.surgery import Certificate, apply, certify
from microtome.surgery.proof import healed_checks


def save_cut(
    base: Path,
    edit: str,
    healed: Path | None,
    out: Path,
    *,
    vocabulary: Path | None = None,
    scores: str = "",
) -> Certificate:
    """Write the cut of ``base`` by ``edit`` to ``out``; ``healed`` is its folder after training.

    The cut itself is proven on the base's weights, as ``operate`` proves it; of the trained weights
    it is proven that the folder gives what they compute. ``scores`` are for the card.
    """
    smaller = () if vocabulary is None else (Vocabulary(vocabulary),)
    edits = Edits(parse(edit), *smaller)
    whole = load(base, head="saved")
    cut = apply(edits, whole)
    proven: list[Certificate] = []

    def prove(folder: Path) -> Mapping[str, object]:
        proven.append(certify(edits, whole, cut, folder).require())
        return proven[-1].as_json()

    if healed is None:
        save(cut, out, prove=prove, story=scores)
        return proven[-1]
    with tempfile.TemporaryDirectory() as place:
        save(cut, Path(place) / "cut", prove=prove)
    trained = load(healed, head="saved")
    kept = apply(Edits(*smaller), trained) if smaller else trained

    def prove_trained(folder: Path) -> Mapping[str, object]:
        shutil.copyfile(healed / RECORD, folder / RECORD)
        checks = (*proven[0].checks, *healed_checks(kept, folder))
        proven.append(Certificate(checks, proven[0].warnings).require())
        return proven[-1].as_json()

    save(kept, out, prove=prove_trained, story=f"{_training(healed)} {scores}".strip())
    return proven[-1]


def _training(healed: Path) -> str:
    """What happened to the weights after the cut, in a sentence."""
    record = files.read_json(healed / RECORD)
    return (
        "After the cut it learnt to answer as its base does:"
        f" {record['n_steps']:,} steps of {record['batch_size']} texts, {record['texts']:,} texts"
        f" in all, seed {record['seed']} (`{RECORD}`). The certificate proves the cut; the training"
        " is recorded."
    )
