"""Heads disabled and layers removed, healed or not, as answers whose losses are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtome.edits import parse
from microtome.experiments.field.predictors.scores import Place
from microtome.experiments.field.trim.healing import HEALED
from microtome.experiments.kao.layer_removal.stored_cuts import StoredCuts
from microtome.experiments.kit.paired_comparison import Outcome
from microtome.experiments.kit.stored_predictions import Indices, score_on, stored_arrays
from microtome.experiments.kovaleva.head_disabling.head_sets import BASELINE, HeadSets, kind_of
from microtome.families import adapt
from microtome.observe.outcomes import ordered_answers, outcomes
from microtome.runs import Need


def losses_of(
    variants: Mapping[Place, Outcome], baseline: Outcome, rows: Indices
) -> dict[Place, float]:
    """What each variant loses against the baseline on some rows."""
    whole = score_on(baseline, rows)
    return {place: whole - score_on(found, rows) for place, found in variants.items()}


@dataclass(frozen=True, eq=False)
class SweptHeads:
    """Heads disabled one by one, and any set of them."""

    sets: HeadSets
    unit = "head"

    @property
    def baseline(self) -> Outcome:
        """The model with all heads."""
        return self.sets.outcome(())

    def losses(self, rows: Indices) -> dict[Place, float]:
        """What disabling each head loses on these rows."""
        singles: dict[Place, Outcome] = {
            (int(layer), int(head)): by_metric[self.sets.metric]
            for name, by_metric in self.sets.answers.items()
            if name != BASELINE and kind_of(name) == "head"
            for layer, head in (name.split("."),)
        }
        return losses_of(singles, self.baseline, rows)

    def outcomes(self, chosen: Sequence[tuple[Place, ...]]) -> dict[tuple[Place, ...], Outcome]:
        """With each of these sets disabled."""
        named = {cut: tuple(f"{i}.{j}" for i, j in cut) for cut in chosen}
        self.sets.compute(named.values())
        return {cut: self.sets.outcome(heads) for cut, heads in named.items()}


@dataclass(frozen=True, eq=False)
class SweptLayers:
    """Layers removed one by one, and any set of them."""

    cuts: StoredCuts
    unit = "layer"

    @property
    def baseline(self) -> Outcome:
        """The model with all layers."""
        return self.cuts.baseline[self.cuts.metric]

    def losses(self, rows: Indices) -> dict[Place, float]:
        """What removing each layer loses on these rows; those that can't go have no place."""
        singles: dict[Place, Outcome] = {
            (int(name), None): by_metric[self.cuts.metric]
            for name, by_metric in self.cuts.outcomes.items()
        }
        return losses_of(singles, self.baseline, rows)

    def outcomes(self, chosen: Sequence[tuple[Place, ...]]) -> dict[tuple[Place, ...], Outcome]:
        """Without each of these sets."""
        model, dataset, encoded = self.cuts.model, self.cuts.dataset, self.cuts.encoded
        removed = [{layer for layer, _ in cut} for cut in chosen]
        n_layers = adapt(model).shape.n_layers
        orders = [tuple(i for i in range(n_layers) if i not in gone) for gone in removed]
        answers = ordered_answers(model, dataset, encoded, orders) if orders else ()
        return {
            cut: outcomes(model, dataset, encoded, kept)[self.cuts.metric]
            for cut, kept in zip(chosen, answers, strict=True)
        }


@dataclass(frozen=True, eq=False)
class HealedLayers:
    """The model without each layer, after it learned to answer as the whole one does."""

    cuts: StoredCuts
    healed: Mapping[Place, Outcome]
    unit = "layer"

    @classmethod
    def of(cls, cuts: StoredCuts, trials: Sequence[Need]) -> HealedLayers:
        """From the trials that healed; the layer is the one that an edit removes."""
        names = {parse(f"remove({name})").text: int(name) for name in cuts.outcomes}
        healed: dict[Place, Outcome] = {}
        for need in trials:
            assert need.arrays is not None
            answers = stored_arrays(need.arrays)[HEALED]
            found = outcomes(cuts.model, cuts.dataset, cuts.encoded, answers)
            healed[names[parse(need.summary["edit"]).text], None] = found[cuts.metric]
        return cls(cuts, healed)

    @property
    def baseline(self) -> Outcome:
        """The model with all layers."""
        return self.cuts.baseline[self.cuts.metric]

    def losses(self, rows: Indices) -> dict[Place, float]:
        """What the model without each layer still loses on these rows."""
        return losses_of(self.healed, self.baseline, rows)

    def outcomes(self, chosen: Sequence[tuple[Place, ...]]) -> dict[tuple[Place, ...], Outcome]:
        """Without each of these layers; a cut of several wasn't healed."""
        return {cut: self.healed[place] for cut in chosen for (place,) in (cut,)}
