"""ModernBERT: layer 0 stays, layer types move with their layers, projections are fused."""

from __future__ import annotations

import pytest
import torch

from microtome.edits import parse
from microtome.errors import EditError
from microtome.families import adapt
from support.tiny import tiny_model

FULL, SLIDING = "full_attention", "sliding_attention"


@pytest.mark.parametrize(
    "text",
    [
        "duplicate(0)",
        "duplicate(first=2)",
        "remove(0)",
        "order(1, 0, 2)",
        "repeat(0-1)",
        "keep(1-2)",
    ],
)
def test_layer_0_stays_first_and_single(text):
    with pytest.raises(EditError, match="layer 0"):
        parse(text)(tiny_model("modernbert"))


def test_extend_duplicates_from_layer_1_on():
    model = tiny_model("modernbert")
    edited = parse("extend(5)")(model)
    by_hand = parse("order(0, 1, 1, 2, 2)")(model)
    assert all(
        torch.equal(a, b)
        for a, b in zip(edited.state_dict().values(), by_hand.state_dict().values(), strict=True)
    )
    with pytest.raises(EditError, match=r"extend\(3\) to extend\(5\)"):
        parse("extend(6)")(model)


def test_layer_types_move_with_their_layers():
    model = tiny_model("modernbert", num_hidden_layers=5)  # global attention every third layer
    assert model.config.layer_types == [FULL, SLIDING, SLIDING, FULL, SLIDING]
    edited = parse("order(0, 3, 1, 3)")(model)
    assert edited.config.layer_types == [FULL, FULL, SLIDING, FULL]
    family = adapt(edited)
    assert [family.window(i) for i in range(4)] == [None, None, 3, None]


def test_disabling_touches_only_the_heads_query_rows_of_the_fused_projection():
    model = tiny_model("modernbert")
    edited = parse("disable(1.2)")(model)
    name = "model.layers.1.attn.Wqkv.weight"
    before, after = model.state_dict()[name], edited.state_dict()[name]
    changed = (before != after).any(1).nonzero().flatten().tolist()
    assert changed == list(range(16, 24))  # head 2 of four heads of width 8, among the queries
    others = [
        n for n, v in edited.state_dict().items() if not torch.equal(v, model.state_dict()[n])
    ]
    assert others == [name]
