"""What ``microtome operate`` does: load, edit, save, prove, all or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch
from transformers import PreTrainedModel

from microtome.edits import Edit, Edits
from microtome.families import adapt
from microtome.models import Cost, Source, cost, load, load_tokenizer, resolve, save
from microtome.models.folders import check_empty
from microtome.surgery.application import apply
from microtome.surgery.certificate import Certificate, Check
from microtome.surgery.proof import certify


@dataclass(frozen=True)
class Operation:
    """What was done: from which model, by which edits, where it is saved, and the proof."""

    base: str
    edits: tuple[str, ...]
    out: Path
    layers: int
    certificate: Certificate
    cost_before: Cost
    cost_after: Cost


def operate(
    name: str | PathLike[str] | Source,
    edits: Edit | Edits,
    out: str | PathLike[str],
    *,
    allow_pickle: bool = False,
    revision: str | None = None,
) -> Operation:
    """Edit the model called ``name`` and save it in ``out`` with a certificate that passed.

    ``operate("nano-bert", parse("remove(10-11)"), "shorter").certificate`` has the checks.
    Any head of a supported family will do: the class that the checkpoint names is kept.
    A certificate that fails is a :class:`~microtome.errors.CertificateFailed`, and nothing is left
    in ``out``.
    """
    check_empty(out)
    source = name if isinstance(name, Source) else resolve(name, revision=revision)
    base = load(source, head="saved", allow_pickle=allow_pickle)
    load_tokenizer(source)  # refuses one that disagrees with the vocabulary
    before = fingerprint(base)
    edited = apply(edits, base)
    proven: list[Certificate] = []

    def prove(folder: Path) -> Mapping[str, object]:
        certificate = certify(edits, base, edited, folder)
        untouched = fingerprint(base) == before
        purity = Check("input unchanged", untouched, f"sha256 {before[:16]}… before and after")
        proven.append(Certificate((*certificate.checks, purity), certificate.warnings).require())
        return proven[0].as_json()

    target = save(edited, out, prove=prove)
    return Operation(
        base=source.name,
        edits=tuple(edit.text for edit in Edits(edits)),
        out=target,
        layers=adapt(edited).shape.n_layers,
        certificate=proven[0],
        cost_before=cost(base),
        cost_after=cost(edited),
    )


def fingerprint(model: PreTrainedModel) -> str:
    """The sha256 of all tensors of a model in memory, by name."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
