"""All depths of held-out texts read in three ways: directly, through the lens, and its control."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from microtome.experiments.field.lens.divergence import divergence, log_shares, row_slices
from microtome.experiments.field.lens.maps import DepthMap
from microtome.experiments.field.lens.positions import ReadTexts
from microtome.observe import Readout, Texts
from microtome.observe.predicting import states
from microtome.observe.scanning import best_tokens

READINGS = ("direct", "lens", "control")
Maps = Mapping[int, DepthMap]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Readings:
    """Sums over the tokens of each text that are read: (readings, depths, n), and how many (n,)."""

    divergence: NDArray[np.float64]  # KL from the last depth's distribution, in nats
    right: NDArray[np.int64]  # the best token is the text's
    agrees: NDArray[np.int64]  # the best token is the last depth's
    n_tokens: NDArray[np.int64]


@torch.inference_mode()
def read_depths(
    model: PreTrainedModel,
    control: PreTrainedModel,
    read: ReadTexts,
    readout: Readout,
    lens: Maps,
    control_lens: Maps,
    *,
    progress: Progress | None = None,
) -> Readings:
    """Read every depth of ``model``, and of ``control`` through the maps fitted to it.

    A depth without a map is read as it is. All are compared with the last depth of ``model``.
    """
    n_texts, text_of = len(read), read.text_of_tokens
    truth = torch.from_numpy(np.asarray(read.truth, dtype=np.int64))
    tallies: list[NDArray[np.float64]] = []
    done = 0
    both = zip(states(model, read.texts), states(control, read.texts), strict=True)
    for (chunk, depths), (_, controlled) in both:
        rows = np.flatnonzero(read.is_read[chunk.tokens])
        tokens = chunk.tokens[rows]
        taken = torch.from_numpy(rows).to(chunk.ids.device)
        own, other = ([depth[taken] for depth in each] for each in (depths, controlled))
        readings = [own, _through(lens, own), _through(control_lens, other)]
        wanted = truth[torch.from_numpy(tokens)].to(chunk.ids.device)
        scores = _scores(readout, readings, wanted)  # (3, T, readings, depths)
        if not tallies:
            tallies = [np.zeros((n_texts, *scores.shape[2:])) for _ in scores]
        for tally, values in zip(tallies, scores, strict=True):
            np.add.at(tally, text_of[tokens], values)
        done += len(chunk.texts)
        if progress is not None:
            progress(done, n_texts)
    n_tokens = np.bincount(text_of[read.tokens], minlength=n_texts)
    diverged, right, agrees = (tally.transpose(1, 2, 0) for tally in tallies)
    return Readings(diverged, right.astype(np.int64), agrees.astype(np.int64), n_tokens)


def _through(maps: Maps, depths: Sequence[Tensor]) -> list[Tensor]:
    """The states of all depths, mapped where there is a map."""
    return [maps[depth](own) if depth in maps else own for depth, own in enumerate(depths)]


def _scores(
    readout: Readout, readings: Sequence[Sequence[Tensor]], truth: Tensor
) -> NDArray[np.float64]:
    """KL, right and agrees of every token: states (T, D) by reading and depth → (3, T, …)."""
    last = readings[0][-1]
    found = np.zeros((3, len(last), len(readings), len(readings[0])))
    for rows in row_slices(readout, len(last)):
        wanted = log_shares(readout, readout.features(last[rows]))
        best = wanted.argmax(1)
        for reading, depths in enumerate(readings):
            for depth, own in enumerate(depths):
                given = log_shares(readout, readout.features(own[rows]))
                guessed = given.argmax(1)
                columns = (divergence(wanted, given), guessed == truth[rows], guessed == best)
                for place, values in enumerate(columns):
                    found[place, rows, reading, depth] = values.cpu().numpy()
    return found


@torch.inference_mode()
def decoded_text(
    model: PreTrainedModel, text: Texts, readout: Readout, maps: Maps
) -> list[list[int]]:
    """The best token at every position of one text, special ones too, for every depth."""
    _, depths = next(states(model, text))
    return [best_tokens(readout, readout.features(own)).tolist() for own in _through(maps, depths)]
