"""The full certificate: run the edited model, and load it from disk with plain transformers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.edits import Edit, Edits
from microtome.families import adapt
from microtome.families.seam import Family
from microtome.models.building import lacks_pooler
from microtome.models.heads import is_pooler_tensor
from microtome.models.provenance import provenance_of
from microtome.models.quiet import quiet_transformers
from microtome.models.saving import encoder_path
from microtome.surgery.certificate import (
    Certificate,
    Check,
    same_bits,
    vocabulary_check,
    warnings_of,
    weight_checks,
)
from microtome.surgery.sentence_proof import sentence_checks
from microtome.surgery.trace import LayerTrace, Trace, trace
from microtome.surgery.vocabulary_proof import class_inputs, vocabulary_checks

PROBE_LENGTHS = (13, 8, 5)  # padded together, so that a forgotten mask shows
UNIFORM_TOLERANCE = 1e-6
ROUND_TRIP_TOLERANCE = 1e-6
LOSSES = ("missing_keys", "unexpected_keys", "mismatched_keys")


@dataclass(frozen=True)
class Seen:
    """What a model shows on the probe: states before each layer and at the end, and all maps."""

    states: tuple[Tensor, ...]  # N + 1 of (B, L, D); the last one normed where the family norms
    maps: tuple[Tensor, ...]  # N of (B, H, L, L)


def certify(
    edits: Edit | Edits, base: PreTrainedModel, edited: PreTrainedModel, saved: Path
) -> Certificate:
    """The full certificate of ``edited``, which was made from ``base`` and saved in ``saved``."""
    old, new = adapt(base), adapt(edited)
    expected = trace(Edits(edits), old)
    checks = list(weight_checks(old, new, expected))
    if all(check.passed for check in checks):
        batch = probe(new)
        before, after = look(base, in_base(batch, old, new, expected)), look(edited, batch)
        checks += effect_checks(old, new, expected, before, after)
        checks += head_checks(new, expected, before, after, batch["attention_mask"].bool())
        if expected.vocabulary is not None:
            checks += vocabulary_checks(Edits(edits), base, edited, saved)
        checks.append(round_trip_check(edited, saved / encoder_path(edited), batch))
        checks += sentence_checks(rounded(edited), saved)
    return Certificate(tuple(checks), warnings=warnings_of(edited))


def healed_checks(healed: PreTrainedModel, saved: Path) -> Iterator[Check]:
    """What can be proven of a cut model after its training: the folder gives what it computes."""
    batch = probe(adapt(healed))
    after = [round_trip_check(healed, saved / encoder_path(healed), batch)]
    after += sentence_checks(rounded(healed), saved)
    yield from (replace(check, name=f"after healing: {check.name}") for check in after)


def probe(family: Family) -> dict[str, Tensor]:
    """A fixed padded batch of random tokens; no tokenizer is needed to prove an edit."""
    shape = family.shape
    lengths = torch.tensor([min(length, shape.n_positions) for length in PROBE_LENGTHS])
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(shape.vocabulary, (len(lengths), int(lengths.max())), generator=generator)
    pad = family.config.pad_token_id or 0
    # RoBERTa counts positions by tokens that aren't padding: none may occur by chance.
    ids = torch.where(ids == pad, (pad + 1) % shape.vocabulary, ids)
    mask = torch.arange(ids.shape[1]) < lengths[:, None]
    return {"input_ids": ids.where(mask, torch.tensor(pad)), "attention_mask": mask.long()}


def in_base(
    batch: dict[str, Tensor], old: Family, new: Family, expected: Trace
) -> dict[str, Tensor]:
    """The probe with the ids that its tokens have in the base."""
    if expected.vocabulary is None:
        return batch
    _, kept = vocabulary_check(old, new)
    assert kept is not None  # it was checked before
    return {**batch, "input_ids": kept[batch["input_ids"]]}


@torch.no_grad()
def look(model: PreTrainedModel, batch: dict[str, Tensor]) -> Seen:
    """States and maps of a model on the probe, by transformers' eager attention."""
    eager = copy.deepcopy(model).eval()
    if eager.config._attn_implementation != "eager":  # some families have no other, and say so
        eager.set_attn_implementation("eager")
    out = eager.base_model(**batch, output_hidden_states=True, output_attentions=True)
    states = (*out.hidden_states[:-1], out.last_hidden_state)
    return Seen(states=states, maps=tuple(out.attentions))


def effect_checks(
    old: Family, new: Family, expected: Trace, before: Seen, after: Seen
) -> Iterator[Check]:
    """States are equal up to the first layer that differs, and differ at the end."""
    first = first_difference(old, new, expected)
    if first is None:
        equal = all(map(same_bits, before.states, after.states))
        why = "an identity" if expected.vocabulary is None else "no layer changed"
        yield Check("no effect", equal, f"{why}: all states are equal bit for bit")
        return
    if not expected.randomised:
        # The last state of either model is the normed one: inner states compare with inner ones.
        depths = range(min(first + 1, len(before.states) - 1, len(after.states) - 1))
        equal = all(same_bits(before.states[d], after.states[d]) for d in depths)
        yield Check("no effect below", equal, f"states at depths 0 to {depths[-1]} are equal")
    moved = float((before.states[-1] - after.states[-1]).abs().max())
    yield Check("effect", moved > 0.0, f"the last state moves by up to {moved:.3g}")


def first_difference(old: Family, new: Family, expected: Trace) -> int | None:
    """The first layer whose weights (or absence) make the two models differ, by content."""
    if expected.randomised:
        return 0
    for index, (was, now) in enumerate(zip(old.layers, new.layers, strict=False)):
        pairs = zip(was.parameters(), now.parameters(), strict=True)
        if not all(same_bits(one.detach(), other.detach()) for one, other in pairs):
            return index
    n_common = min(len(old.layers), len(new.layers))
    return None if len(old.layers) == len(new.layers) else n_common


def head_checks(
    new: Family, expected: Trace, before: Seen, after: Seen, real: Tensor
) -> Iterator[Check]:
    """Disabled heads attend to the real tokens alike; every other head sees what it saw."""
    uniform = [(i, j) for i, layer in enumerate(expected.layers) for j in layer.uniform_heads]
    if uniform:
        off = max(
            float((after.maps[i][:, j] - uniform_map(new, i, real))[real].abs().max())
            for i, j in uniform
        )
        who = "1 head attends" if len(uniform) == 1 else f"{len(uniform)} heads attend"
        detail = f"{who} 1/L to real tokens, 0 to padding (off by {off:.1g})"
        yield Check("uniform attention", off <= UNIFORM_TOLERANCE, detail)
    moved, n_compared = [], 0
    for i, layer in enumerate(expected.layers):
        if not same_bits(after.states[i], before.states[layer.source]):
            continue  # another input: nothing can be said of its maps
        for j in kept_heads(layer):
            n_compared += 1
            if not same_bits(after.maps[i][:, j], before.maps[layer.source][:, j]):
                moved.append(f"{i}.{j}")
    detail = f"{n_compared} heads with the same input attend as in the base"
    yield Check("other heads", not moved, f"changed: {', '.join(moved[:5])}" if moved else detail)


def kept_heads(layer: LayerTrace) -> Iterator[int]:
    """The heads whose queries and keys must be those of the base layer."""
    for j, fates in enumerate(zip(layer.query_weight, layer.query_bias, strict=True)):
        if {*fates, layer.weights, layer.rest} == {"kept"}:
            yield j


def uniform_map(family: Family, index: int, real: Tensor) -> Tensor:
    """1/L over the keys that layer ``index`` may see, (B, L, L)."""
    seen = real[:, None, :].expand(-1, real.shape[1], -1)
    if (window := family.window(index)) is not None:
        place = torch.arange(real.shape[1])
        seen = seen & ((place[:, None] - place[None, :]).abs() <= window)
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


def round_trip_check(edited: PreTrainedModel, saved: Path, batch: dict[str, Tensor]) -> Check:
    """Load with plain ``from_pretrained`` and compare with the model in memory.

    A headless model whose file has no pooler gets a random one from transformers, as its base does:
    that is no loss of weights, and its output isn't compared.
    """
    with quiet_transformers():
        loaded, info = type(edited).from_pretrained(
            saved, dtype=torch.float32, output_loading_info=True, use_safetensors=True
        )
    invented = set(filter(is_pooler_tensor, info["missing_keys"])) if lacks_pooler(edited) else ()
    lost = [str(key) for kind in LOSSES for key in info[kind] if key not in invented]
    if lost:
        return Check("round trip", False, f"keys missing or unexpected: {', '.join(lost[:3])}")
    reference = rounded(edited)
    inputs = class_inputs(edited, batch)
    with torch.no_grad():
        ours, theirs = reference(**inputs), loaded.eval()(**inputs)
    pairs = [(look(reference, batch).states[-1], look(loaded, batch).states[-1])]
    pairs += [(ours[key], theirs[key]) for key in ours if isinstance(ours[key], Tensor)]
    off = max(float((one - other).abs().max()) for one, other in pairs)
    scale = max(1.0, *(float(one.abs().max()) for one, _ in pairs))
    what = "outputs, without the pooler's," if invented else "outputs"
    detail = f"saved and loaded by plain transformers: {what} differ by {off:.1g}"
    return Check("round trip", off <= ROUND_TRIP_TOLERANCE * scale, detail)


def rounded(model: PreTrainedModel) -> PreTrainedModel:
    """A copy whose weights went through the dtype that the model is saved in."""
    copied = cast(PreTrainedModel, copy.deepcopy(model).to(torch.float32).eval())
    if (origin := provenance_of(model)) is not None:
        # Parameters only: buffers that aren't saved, like rotary frequencies, stay exact.
        for parameter in copied.parameters():
            parameter.data = parameter.data.to(getattr(torch, origin.dtype)).to(torch.float32)
    return copied
