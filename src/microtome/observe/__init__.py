"""Looks, never changes: packed forward passes, decoding, attention statistics, head sweeps.

Everything takes texts as flat token arrays (:class:`Encoded`) and gives results in their order.
"""

from __future__ import annotations

from microtome.observe.attention import MapBlock, Reduction, stream
from microtome.observe.decoding import (
    Decoding,
    decode,
    decode_document,
    decoded_ids,
    depth_rows,
)
from microtome.observe.predicting import predict, states
from microtome.observe.readouts import Readout, fitted_head, readout_of
from microtome.observe.reductions import HeadMeans, SampledMaps
from microtome.observe.sweeping import Sweep, sweep
from microtome.observe.targets import Target, every_head_and_layer, target
from microtome.observe.texts import Encoded, Texts
from microtome.observe.vocabulary import TOKEN_CLASSES, Vocabulary, token_classes, vocabulary_of

__all__ = [
    "TOKEN_CLASSES",
    "Decoding",
    "Encoded",
    "HeadMeans",
    "MapBlock",
    "Readout",
    "Reduction",
    "SampledMaps",
    "Sweep",
    "Target",
    "Texts",
    "Vocabulary",
    "decode",
    "decode_document",
    "decoded_ids",
    "depth_rows",
    "every_head_and_layer",
    "fitted_head",
    "predict",
    "readout_of",
    "states",
    "stream",
    "sweep",
    "target",
    "token_classes",
    "vocabulary_of",
]
