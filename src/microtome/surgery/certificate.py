"""The certificate: named checks that an edit did what it says, and nothing else.

The cheap part compares tensors (:func:`weight_checks`); the full part adds an effect where there
must be one, the attention of disabled heads, and a round trip through the disk
(:mod:`microtome.surgery.proof`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from microtome.edits import Edit, Edits
from microtome.errors import CertificateFailed
from microtome.families import adapt
from microtome.families.anatomy import QUERY_NAMES
from microtome.families.seam import Family
from microtome.families.vocabulary import vocabulary_tensors
from microtome.models.building import lacks_pooler
from microtome.models.loading import nonfinite_tensors
from microtome.models.tokenizers import tokenizer_of
from microtome.surgery.application import CUT
from microtome.surgery.trace import Fate, LayerTrace, Trace, trace


@dataclass(frozen=True)
class Check:
    """One line of a certificate; ``passed`` is None where the check couldn't be run here."""

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Certificate:
    """All checks of one edited model. ``warnings`` are worth knowing and prove nothing."""

    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check that was run passed."""
        return all(check.passed is not False for check in self.checks)

    def require(self) -> Certificate:
        """This certificate, or :class:`CertificateFailed` naming the checks that failed."""
        failed = [
            f"{check.name} ({check.detail})" for check in self.checks if check.passed is False
        ]
        if failed:
            raise CertificateFailed(
                f"the edited model is not what the edits say: {'; '.join(failed)}",
                "nothing was written; please report this with the model and the edits",
            )
        return self

    def as_json(self) -> dict[str, Any]:
        """The shape that ``operate --json`` prints and ``microtome.json`` keeps."""
        checks = [vars(check) for check in self.checks]
        return {"passed": self.passed, "checks": checks, "warnings": list(self.warnings)}

    def _repr_html_(self) -> str:
        """In a notebook: the checks as a table."""
        marks = {True: "ok", False: "failed", None: "not run"}
        lines = [(marks[check.passed], check.name, check.detail) for check in self.checks]
        lines += [("note", "", warning) for warning in self.warnings]
        rows = "".join(
            f"<tr><td>{mark}</td><td>{escape(name)}</td><td>{escape(detail)}</td></tr>"
            for mark, name, detail in lines
        )
        title = "Certificate: every check passed" if self.passed else "Certificate: failed"
        return f"<b>{title}</b><table>{rows}</table>"


def certify_weights(
    edits: Edit | Edits, base: PreTrainedModel, edited: PreTrainedModel
) -> Certificate:
    """The cheap certificate: which tensors changed, and that no other did.

    ``certify_weights(edit, model, edit(model)).require()`` raises unless every check passed.
    """
    old, new = adapt(base), adapt(edited)
    expected = trace(Edits(edits), old)
    return Certificate(tuple(weight_checks(old, new, expected)), warnings=warnings_of(edited))


def weight_checks(old: Family, new: Family, expected: Trace) -> Iterator[Check]:
    """Counts and bookkeeping first: with a wrong count no tensor can be compared."""
    counts = count_check(new, expected)
    yield counts
    if not counts.passed:
        return
    yield bookkeeping_check(new)
    layers = [
        problem
        for index, layer in enumerate(expected.layers)
        for problem in layer_problems(old, new, index, layer)
    ]
    n_kept = sum(is_kept(layer) for layer in expected.layers)
    yield _check("layers", layers, f"{n_kept} of {len(expected.layers)} layers kept bit for bit")
    kept = None
    if expected.vocabulary is not None:
        vocabulary, kept = vocabulary_check(old, new)
        yield vocabulary
        if kept is None:
            return
    yield outside_check(old, new, randomised=expected.randomised, kept=kept)


def count_check(new: Family, expected: Trace) -> Check:
    """Config, module list and shared weights agree on the number of layers."""
    n_expected, n_layers, n_declared = len(expected.layers), len(new.layers), new.shape.n_layers
    n_distinct = len({id(layer) for layer in new.layers})
    n_distinct_expected = 1 if expected.rules.shared else len(set(new.sharing))
    passed = n_expected == n_layers == n_declared and n_distinct == n_distinct_expected
    order = ",".join(str(layer.source) for layer in expected.layers)
    detail = f"{n_layers} layers, from base layers {order}, with {n_distinct} sets of weights"
    problem = f"; expected {n_expected}, the config says {n_declared}"
    return Check("layer count", passed, detail if passed else detail + problem)


def bookkeeping_check(new: Family) -> Check:
    """Every layer reads the model's config and has the index of its place."""
    problems = []
    for index, layer in enumerate(new.layers):
        for name, module in layer.named_modules():
            if getattr(module, "config", new.config) is not new.config:
                problems.append(f"layer {index} {name} has another config")
            if getattr(module, "layer_idx", index) != index:
                problems.append(f"layer {index} {name} has layer_idx {module.layer_idx}")
    return _check("bookkeeping", problems, "configs and layer indices agree")


def vocabulary_check(old: Family, new: Family) -> tuple[Check, Tensor | None]:
    """The tokens that stayed, and for each of them the row of the same token in the base.

    The rows are None where config, embeddings and tokenizer don't fit together.
    """
    tokenizers = tokenizer_of(old.model), tokenizer_of(new.model)
    before, after = ({} if it is None else it.get_vocab() for it in tokenizers)
    n_tokens = len(after)
    problems = []
    if sorted(after.values()) != list(range(n_tokens)):
        problems.append("the ids of the tokenizer have gaps")
    if not n_tokens == new.shape.vocabulary == len(new.word_embeddings):
        problems.append(
            f"{n_tokens} tokens, {len(new.word_embeddings)} embeddings, and the config says "
            f"{new.shape.vocabulary}"
        )
    if foreign := after.keys() - before.keys():
        problems.append(f"{len(foreign)} tokens that the base doesn't have")
    if problems:
        return _check("vocabulary", problems, ""), None
    kept = [before[token] for token in sorted(after, key=after.__getitem__)]
    named = {index: token for token, index in before.items()}
    for key, was in old.config.to_dict().items():
        is_token = key.endswith("_token_id") and isinstance(was, int) and was in named
        if is_token and getattr(new.config, key) != after.get(named[was]):
            problems.append(f"{key} is another token than {named[was]}")
    fine = f"{n_tokens:,} of {len(before):,} tokens stay, with the special ones"
    return _check("vocabulary", problems, fine), torch.tensor(kept)


def outside_check(
    old: Family, new: Family, *, randomised: bool, kept: Tensor | None = None
) -> Check:
    """Everything outside the layers: as in the base, or drawn afresh with it.

    ``kept`` are the base's rows of the tokens that are left, where there are fewer now.
    """
    before, after = _outside(old), _outside(new)
    smaller = {} if kept is None else vocabulary_tensors(old)
    before |= {name: value.detach()[kept] for name, value in smaller.items()}
    problems = [f"{name} came or went" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        if not randomised and not same_bits(before[name], after[name]):
            problems.append(f"{name} changed")
    if randomised and all(same_bits(before[n], after[n]) for n in before.keys() & after.keys()):
        problems.append("nothing outside the layers was drawn afresh")
    detail = f"{len(after)} tensors outside the layers {'drawn' if randomised else 'unchanged'}"
    if smaller:
        detail += f", {len(smaller)} of them with the rows of the tokens that stay"
    return _check("other tensors", problems, detail)


def layer_problems(old: Family, new: Family, index: int, layer: LayerTrace) -> Iterator[str]:
    """What is not as the trace says, in one layer of the edited model."""
    before = dict(old.layers[layer.source].named_parameters())
    after = dict(new.layers[index].named_parameters())
    if before.keys() != after.keys():
        yield f"layer {index} has other tensors than base layer {layer.source}"
        return
    regions = list(_regions(new, layer))
    for name, value in after.items():
        fates = [(where, fate) for region, where, fate in regions if region == name]
        for where, fate in fates or [(slice(None), layer.rest)]:
            was, now = before[name].detach()[where], value.detach()[where]
            if not _as_fated(name, was, now, fate, layer.std):
                yield f"layer {index} {name} should be {fate} (base layer {layer.source})"
                break


def is_kept(layer: LayerTrace) -> bool:
    """Whether nothing in a layer may differ from its base layer."""
    fates = {*layer.query_weight, *layer.query_bias, *layer.output_columns}
    return fates | {layer.weights, layer.rest} == {"kept"}


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Equality to the bit; NaN equals itself."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def warnings_of(model: PreTrainedModel) -> tuple[str, ...]:
    """What a user should know about the weights: tensors that aren't finite, a pooler not there."""
    warnings = []
    if broken := nonfinite_tensors(model):
        shown = ", ".join(broken[:3]) + ("…" if len(broken) > 3 else "")
        warnings.append(f"{len(broken)} tensors hold NaN or infinite values: {shown}")
    if lacks_pooler(model):
        warnings.append(
            "the checkpoint has no pooler, like its base: plain AutoModel draws a random one, so "
            "use last_hidden_state, or load it with add_pooling_layer=False"
        )
    return tuple(warnings)


def _regions(family: Family, layer: LayerTrace) -> Iterator[tuple[str, Any, Fate]]:
    """(parameter name, index into it, fate) for all projections; others follow ``rest``."""
    heads = range(family.shape.n_heads)
    for part in family.parts:
        weight, bias = f"{part.path}.weight", f"{part.path}.bias"
        start, stop = part.rows or (0, None)
        if part.name in QUERY_NAMES:
            for j in heads:
                rows = family.head_rows(j)
                yield weight, slice(start + rows.start, start + rows.stop), layer.query_weight[j]
                yield bias, slice(start + rows.start, start + rows.stop), layer.query_bias[j]
            continue
        yield bias, slice(start, stop), layer.rest
        if part.name == "attention_output":
            for j in heads:
                yield weight, (slice(None), family.head_rows(j)), layer.output_columns[j]
        else:
            yield weight, slice(start, stop), layer.weights


def _as_fated(name: str, was: Tensor, now: Tensor, fate: Fate, std: float | None) -> bool:
    if fate == "kept":
        return same_bits(was, now)
    if fate == "zero":
        return bool((now == 0).all())
    if fate == "reset":
        is_norm_weight = name.endswith(".weight")  # of the rest, only norms have a weight
        return bool((now == (1.0 if is_norm_weight else 0.0)).all())
    if std is None:  # by the model's initialiser: biases may be what they were, matrices can't
        return now.dim() < 2 or not same_bits(was, now)
    bounded = bool((now.abs() <= CUT * std * (1 + 1e-3)).all())
    return bounded and not same_bits(was, now) and bool((now != 0).any())


def _outside(family: Family) -> dict[str, Tensor]:
    inside = f"{family.layers_path}."
    return {
        name: value.detach()
        for name, value in family.model.named_parameters()
        if not name.startswith(inside)
    }


def _check(name: str, problems: list[str], fine: str) -> Check:
    shown = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" * (len(problems) > 3))
    return Check(name, not problems, shown if problems else fine)
