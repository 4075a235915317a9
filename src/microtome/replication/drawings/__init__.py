"""How each kind of exhibit is drawn, by the name that the papers' data give it."""

from collections.abc import Callable, Mapping

from microtome.papers.exhibit import Exhibit
from microtome.replication.drawings import deeper, kao, kovaleva, patterns, singh, tables
from microtome.replication.measured import Measured
from microtome.views import View

DRAWINGS: Mapping[str, Callable[[Measured, Exhibit], tuple[View, ...]]] = {
    "models": tables.models,
    "sizes of tasks": tables.sizes_of_tasks,
    "token accuracy by depth": kao.token_accuracy,
    "decoded text": kao.decoded_text,
    "first token": kao.first_token,
    "token accuracy of deeper models": kao.deeper_models,
    "token accuracy of deeper models (large)": kao.deeper_large_models,
    "score by layers": deeper.score_by_layers,
    "score by strategy": deeper.score_by_strategy,
    "scores by depth": deeper.scores_by_depth,
    "ensembles": kao.ensembles,
    "removal": kao.removal,
    "score by re-initialised layers": singh.score_by_reinitialized,
    "score by re-initialised layers, sizes matched": singh.sizes_matched,
    "probing over re-initialisation": singh.probing,
    "distance by layer": singh.distance_by_layer,
    "typical heads": patterns.typical_heads,
    "shares of patterns": patterns.shares_of_patterns,
    "annotated frames": kovaleva.annotated_frames,
    "frame heads": kovaleva.frame_heads,
    "cosine by head": kovaleva.cosine_by_head,
    "starts": kovaleva.starts,
    "features by head": kovaleva.features_by_head,
    "attention of [CLS]": kovaleva.attention_of_cls,
    "disabled heads": kovaleva.disabled_heads,
    "disabled layers": kovaleva.disabled_layers,
    "overlap and frame heads": kovaleva.overlap_and_frame_heads,
}
