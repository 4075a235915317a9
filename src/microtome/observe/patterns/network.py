"""The network that tells patterns apart: 8 convolutional layers with ReLU, maps of any length.

It ends in means and maxima over the whole map, so that L doesn't matter. Maps of unequal lengths go
through together when they are padded with zeros: a mask keeps the padding at zero after every
layer, and each map gets what it would get alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
BLOCK = PATTERNS.index("block")
N_PLANES = 6
# (channels, stride): the first layer sees every weight, then the map is halved three times.
LAYERS = ((12, 1), (16, 2), (24, 1), (24, 2), (32, 1), (32, 2), (32, 1), (32, 1))


class PatternNetwork(nn.Module):
    """Planes (n, C, L, L) → scores of the classes (n, 5)."""

    def __init__(self) -> None:
        super().__init__()
        channels = (N_PLANES, *(width for width, _ in LAYERS))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels[i], width, 3, stride=stride, padding=1)
            for i, (width, stride) in enumerate(LAYERS)
        )
        self.classes = nn.Linear(2 * channels[-1], len(PATTERNS))
        self.dropout = nn.Dropout(0.2)
        for convolution in self.convolutions:
            # Eight layers without norms: at torch's default the signal dies on the way.
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")  # type: ignore[arg-type]
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]

    def forward(self, planes: Tensor, real: Tensor | None = None) -> Tensor:
        """``real`` (n, L) marks the tokens of padded maps; None: all are."""
        mask = None if real is None else (real[:, None, :, None] & real[:, None, None, :]).float()
        states = planes if mask is None else planes * mask
        for convolution in self.convolutions:
            states = functional.relu(convolution(states))
            if mask is not None:
                # A place of a halved map is real where the place it is centred on was.
                step = convolution.stride[0]  # type: ignore[index]
                mask = mask[..., ::step, ::step]
                states = states * mask
        n_places = states[0, 0].numel() if mask is None else mask.sum((-2, -1))
        means = states.sum((-2, -1)) / n_places
        pooled = torch.cat([means, states.amax((-2, -1))], dim=-1)  # ≥ 0 after a ReLU
        scores: Tensor = self.classes(self.dropout(pooled))
        return scores


def planes_of(maps: Tensor, second: Tensor | None = None, real: Tensor | None = None) -> Tensor:
    """What the network sees of maps (n, L, L): (n, 6, L, L).

    The map as the labeller saw it (the root of the weights, the largest is black), the weights
    relative to uniform attention, how dark each column is, how dark each line parallel to the
    diagonal is, which tokens are of one text, and how far apart they are.
    ``second`` (n, L) marks the tokens of a second text, ``real`` (n, L) those of padded maps.
    """
    n, length = maps.shape[0], maps.shape[-1]
    lengths = maps.new_full((n,), length) if real is None else real.sum(-1).to(maps.dtype)
    size = lengths[:, None, None]
    shown = (maps / maps.amax((-2, -1), keepdim=True).clamp_min(1e-9)).sqrt()
    columns = (shown.sum(-2, keepdim=True) / size).expand_as(maps)
    place = torch.arange(length, device=maps.device)
    near = torch.exp(-(place[:, None] - place[None, :]).abs().float() / 2).expand_as(maps)
    return torch.stack(
        [
            shown,
            torch.log1p(maps * size) / 2,
            columns,
            along_lines(shown, lengths),
            same_text(second, maps),
            near,
        ],
        dim=1,
    )


def along_lines(maps: Tensor, lengths: Tensor) -> Tensor:
    """Each place holds the mean weight of its line, of its places within (lengths, lengths)."""
    n, length = maps.shape[0], maps.shape[-1]
    # Rows one longer than their step: row i moves i places to the left, lines become columns.
    skewed = functional.pad(maps, (length - 1, 0)).flatten(1)
    skewed = functional.pad(skewed, (0, length))[:, : length * (2 * length)]
    lines = skewed.view(n, length, 2 * length).sum(1)  # (n, 2L): place = key − query + L − 1
    place = torch.arange(length, device=maps.device)
    offset = place[None, :] - place[:, None]
    counts = (lengths[:, None, None] - offset.abs()).clamp_min(1)
    return lines[:, offset + length - 1] / counts


def same_text(second: Tensor | None, maps: Tensor) -> Tensor:
    """1 within a text of a pair, −1 across, 0 everywhere for a single text."""
    if second is None:
        return torch.zeros_like(maps)
    same = (second[:, :, None] == second[:, None, :]).to(maps.dtype) * 2 - 1
    return same * second.any(-1)[:, None, None]
