"""Is a folder still what its ``microtome.json`` says? Files, certificate, and the surgery again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from microtome.edits import Edits, parse
from microtome.errors import MicrotomeError, RequestError
from microtome.models import content_hash, load
from microtome.models.configuration import read_object
from microtome.models.contents import file_hashes
from microtome.models.provenance import (
    FILES,
    HISTORY,
    MAX_HISTORY_BYTES,
    OF_RECORD,
    PARTS,
    TRAINING,
    Base,
    read_history,
    record_hash,
)
from microtome.models.sentence_transformers.folder import encoder_folder
from microtome.models.source import embedded_names, fetched, resolve
from microtome.surgery.application import apply
from microtome.surgery.certificate import Certificate, Check, certify_weights, same_bits
from microtome.surgery.proof import certify, rounded


@dataclass(frozen=True)
class Verification:
    """What a folder says of itself, and whether each part of it is true."""

    folder: Path
    base: str
    edits: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing that could be checked is otherwise."""
        return Certificate(self.checks).passed

    def as_json(self) -> dict[str, Any]:
        """What ``verify --json`` prints."""
        return {
            "folder": str(self.folder),
            "base": self.base,
            "edits": list(self.edits),
            "passed": self.passed,
            "checks": [vars(check) for check in self.checks],
        }


def verify(folder: str | PathLike[str], *, base: str | PathLike[str] | None = None) -> Verification:
    """Check a saved folder against its record; ``verify("my-model-small").passed``.

    Every file but the card must have the bytes that it was saved with, the record must say what it
    said, and the certificate must have passed.
    Where the base is at hand (``base``, else an embedded model, or a folder of its name next to
    this one), the edits are made again: of a folder that wasn't trained, every tensor must be the
    same, bit for bit; of a trained one, the surgery before the training is proven.
    """
    place = Path(folder).expanduser()
    history = read_history(place)
    if history is None:
        raise RequestError(
            f"{place} has no {HISTORY}, so there is nothing to verify it against",
            "operate, finetune and trim write one",
        )
    origin, edits = history
    record = read_object(place / HISTORY, max_bytes=MAX_HISTORY_BYTES)
    checks = [_files_check(place, record), _record_check(record), _certificate_check(record, edits)]
    if checks[0].passed and checks[1].passed is not False:  # what was changed isn't loaded
        at_hand = _base_near(place, origin) if base is None else fetched(resolve(base)).path
        checks += _surgery_again(place, record, edits, at_hand)
    return Verification(place, origin.name, edits, tuple(checks))


def _base_near(folder: Path, base: Base) -> Path | None:
    """The base, if it is embedded, or a folder of its name next to this one or here."""
    name = Path(base.name).name  # the record may come from anybody
    embedded = fetched(resolve(name)).path if name in embedded_names() else None
    places = [folder.resolve().parent / name, Path(name)]
    for place in places if embedded is None else [embedded]:
        try:
            is_model = (encoder_folder(place) / "config.json").is_file()
            if is_model and content_hash(place) == base.content_hash:
                return place
        except (OSError, MicrotomeError):  # a name too long, or another folder, which is broken
            continue
    return None


def _files_check(folder: Path, record: dict[str, Any]) -> Check:
    recorded = record.get(FILES)
    if not isinstance(recorded, dict):
        return Check("files", None, "no hashes are recorded: an earlier version saved this folder")
    found = file_hashes(folder)
    changed = [name for name in recorded if name in found and found[name] != recorded[name]]
    wrong = [
        f"{', '.join(sorted(names)[:3])} {what}"
        for names, what in (
            (changed, "changed"),
            (recorded.keys() - found.keys(), "missing"),
            (found.keys() - recorded.keys(), "added"),
        )
        if names
    ]
    return Check("files", not wrong, "; ".join(wrong) or f"{len(found)} files as they were saved")


def _record_check(record: dict[str, Any]) -> Check:
    recorded = record.get(OF_RECORD)
    if recorded is None:
        unknown = sorted(record.keys() - set(PARTS))
        told = f"{unknown[0]!r} isn't a part of it" if unknown else "it has no hash of its own"
        return Check("record", False if unknown else None, f"{HISTORY}: {told}")
    is_same = recorded == record_hash(record)
    return Check("record", is_same, f"{HISTORY} {'as it was saved' if is_same else 'changed'}")


def _certificate_check(record: dict[str, Any], edits: tuple[str, ...]) -> Check:
    stored = record.get("certificate")
    if not isinstance(stored, dict):
        missing = "edits without a certificate" if edits else "nothing was cut"
        return Check("certificate", None if not edits else False, missing)
    checks = stored.get("checks")
    if not isinstance(checks, list) or not all(isinstance(one, dict) for one in checks):
        return Check("certificate", False, "expected a list of checks")
    failed = [str(one.get("name")) for one in checks if one.get("passed") is False]
    passed = stored.get("passed") is True and bool(checks) and not failed
    detail = f"failed: {', '.join(failed)}" if failed else f"{len(checks)} checks passed"
    return Check("certificate", passed, detail)


def _surgery_again(
    folder: Path, record: dict[str, Any], edits: tuple[str, ...], base: Path | None
) -> Iterator[Check]:
    """The edits made once more on the base, if it is here and still the same."""
    name, expected = "surgery again", record["base"]["content_hash"]
    if base is None:
        wanted = record["base"]["name"]
        yield Check(name, None, f"the base {wanted} isn't here; name it: --base MODEL")
        return
    found = content_hash(base)
    if found != expected:
        yield Check(name, False, f"{base} is another model: {found[:12]}…, not {expected[:12]}…")
        return
    try:
        made = Edits(*(parse(text) for text in edits))
    except MicrotomeError as error:  # a vocabulary's texts needn't be here
        yield Check(name, None, error.message)
        return
    whole = load(base, head="saved")
    cut = apply(made, whole)
    if TRAINING in record:
        proof = certify_weights(made, whole, cut)
        detail = f"{len(proof.checks)} checks of the cut before its training"
        yield Check(name, proof.passed, detail)
        return
    proof = certify(made, whole, cut, folder)
    yield Check(name, proof.passed, f"{len(proof.checks)} checks of the cut and of this folder")
    yield _same_tensors(rounded(load(folder, head="saved")), rounded(cut))


def _same_tensors(saved: PreTrainedModel, cut: PreTrainedModel) -> Check:
    one, other = saved.state_dict(), cut.state_dict()
    differ = [
        name
        for name in sorted(one.keys() | other.keys())
        if name not in one or name not in other or not same_bits(one[name], other[name])
    ]
    detail = f"{', '.join(differ[:3])} differ" if differ else f"{len(one)} tensors bit for bit"
    return Check("weights", not differ, detail)
