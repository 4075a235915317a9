"""The contract of the forward pieces: chained, they are the model's own forward pass."""

from __future__ import annotations

import pytest
import torch

from microtome.errors import RequestError
from microtome.families import adapt
from microtome.families.seam import Family
from support.tiny import ANSWERING, FAMILY_TYPES, tiny_batch, tiny_model

# As 24 layers' worth of float32 rounding between two orders of the same sums, at weights of 0.3.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def allowed_keys(family: Family, index: int, mask: torch.Tensor) -> torch.Tensor:
    """Which keys each query may see, (B, 1, L, L): real ones, within the layer's window."""
    length = mask.shape[1]
    seen = mask.bool()[:, None, None, :].expand(-1, 1, length, length)
    if (window := family.window(index)) is not None:
        place = torch.arange(length)
        seen = seen & ((place[:, None] - place[None, :]).abs() <= window)
    return seen


@torch.no_grad()
def states_by_pieces(family: Family, batch: dict) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """All states (depth 0 to N, no final norm) and attention maps, from the pieces alone."""
    ids, mask = batch["input_ids"], batch["attention_mask"]
    positions = torch.arange(ids.shape[1]).expand_as(ids)
    segments = batch.get("token_type_ids", torch.zeros_like(ids))
    states, maps = [family.embed(ids, positions, segments)], []
    for index in range(family.shape.n_layers):
        query, key, value = family.project(index, states[-1], positions)  # (B, L, H, Dh)
        scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * family.scaling
        terms = family.position_scores(
            index, ids.shape[1], query.transpose(1, 2), key.transpose(1, 2)
        )
        scores = scores if terms is None else scores + terms
        # Not -inf: a padded query may see no key at all within its window, and NaN would spread.
        scores = scores.masked_fill(~allowed_keys(family, index, mask), -1e30)
        maps.append(scores.softmax(-1))
        context = torch.einsum("bhqk,bkhd->bqhd", maps[-1], value).flatten(-2)
        attended = family.attention_output(index, states[-1], context)
        states.append(family.feed_forward(index, attended))
    return states, maps


def segmented(family: Family, batch: dict) -> dict:
    """The batch with two segments, where the family has them."""
    if not family.uses_segments:
        return batch
    half = torch.arange(batch["input_ids"].shape[1]) >= 4
    return batch | {"token_type_ids": half.long().expand_as(batch["input_ids"])}


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_pieces_give_every_hidden_state_and_every_attention_map(kind):
    model = tiny_model(kind, "mlm", attention="eager")
    family = adapt(model)
    batch = segmented(family, tiny_batch(kind))
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        out = model(**batch, output_hidden_states=True, output_attentions=True)
    states, maps = states_by_pieces(family, batch)
    assert len(states) == len(out.hidden_states) == family.shape.n_layers + 1
    # The last hidden state of transformers is the normed one, in every family.
    states[-1] = family.final_norm(states[-1])
    for ours, theirs in zip(states, out.hidden_states, strict=True):
        torch.testing.assert_close(ours[real], theirs[real], **CLOSE)
    for ours, theirs in zip(maps, out.attentions, strict=True):
        torch.testing.assert_close(
            ours.transpose(1, 2)[real], theirs.transpose(1, 2)[real], rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_mlm_pieces_give_the_models_logits(kind):
    model = tiny_model(kind, "mlm")
    family = adapt(model)
    batch = tiny_batch(kind)
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        theirs = model(**batch).logits
        last = family.final_norm(states_by_pieces(family, batch)[0][-1])
        ours = family.mlm_decoder()(family.mlm_features(last))
    torch.testing.assert_close(ours[real], theirs[real], rtol=1e-3, atol=1e-3)
    tied = family.mlm_decoder().weight.data_ptr() == family.word_embeddings.data_ptr()
    assert tied == (kind != "eurobert")


# EuroBERT calls the first token "bos", and pools late by default.
POOLINGS = [(kind, "bos" if kind == "eurobert" else "cls") for kind in FAMILY_TYPES]
POOLINGS += [("modernbert", "mean"), ("eurobert", "mean"), ("eurobert", "late")]


@pytest.mark.parametrize(("kind", "pooling"), POOLINGS)
def test_classifier_pieces_give_the_models_logits(kind, pooling):
    options = {"classifier_pooling": pooling} if kind in ("modernbert", "eurobert") else {}
    model = tiny_model(kind, "classification", num_labels=3, **options)
    family = adapt(model)
    batch = tiny_batch(kind)
    mask = batch["attention_mask"][..., None]
    with torch.no_grad():
        theirs = model(**batch).logits
        last = family.final_norm(states_by_pieces(family, batch)[0][-1])
        mean = (family.before_mean(last) * mask).sum(1) / mask.sum(1)
        ours = family.classify(last[:, 0] if family.reads == "first" else mean)
    assert family.reads == (pooling if pooling in ("mean", "late") else "first")
    torch.testing.assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("kind", ANSWERING)
def test_answer_piece_gives_start_and_end_logits(kind):
    model = tiny_model(kind, "question-answering")
    family = adapt(model)
    batch = tiny_batch(kind)
    real = batch["attention_mask"].bool()
    with torch.no_grad():
        out = model(**batch)
        last = family.final_norm(states_by_pieces(family, batch)[0][-1])
        ours = family.answer(last)
    theirs = torch.stack([out.start_logits, out.end_logits], -1)
    torch.testing.assert_close(ours[real], theirs[real], **CLOSE)


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_pieces_work_on_packed_tokens_as_on_padded_ones(kind):
    """Everything but attention works on single tokens: (T, D) gives what (B, L, D) gives."""
    family = adapt(tiny_model(kind, "mlm"))
    batch = tiny_batch(kind)
    real = batch["attention_mask"].bool()
    ids = batch["input_ids"]
    positions = torch.arange(ids.shape[1]).expand_as(ids)
    segments = torch.zeros_like(ids)
    with torch.no_grad():
        padded = family.embed(ids, positions, segments)
        packed = family.embed(ids[real], positions[real], segments[real])
        torch.testing.assert_close(packed, padded[real])
        for index in range(family.shape.n_layers):
            for ours, theirs in zip(
                family.project(index, packed, positions[real]),
                family.project(index, padded, positions),
                strict=True,
            ):
                torch.testing.assert_close(ours, theirs[real], rtol=1e-4, atol=1e-5)
            for alone, among in zip(
                family.project_for_maps(index, packed, positions[real]),
                family.project(index, packed, positions[real])[:2],
                strict=True,
            ):
                torch.testing.assert_close(alone, among)
            torch.testing.assert_close(
                family.feed_forward(index, packed),
                family.feed_forward(index, padded)[real],
                rtol=1e-4,
                atol=1e-5,
            )


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_parts_are_views_that_write_to_the_model(kind):
    family = adapt(tiny_model(kind, "mlm"))
    shape = family.shape
    layer = family.layers[1]
    for part in family.parts:
        weight = part.weight(layer)
        keys = shape.width // 2 if kind == "eurobert" else shape.width
        inner = 2 * shape.inner if kind == "modernbert" else shape.inner
        out_features = {"key": keys, "value": keys, "intermediate": inner, "gate": inner}
        assert weight.shape[0] == out_features.get(part.name, shape.width)
        weight.zero_()
        assert part.weight(layer).abs().max() == 0
        if (bias := part.bias(layer)) is not None:
            assert bias.shape == weight.shape[:1]
    for norm in family.norms:
        assert layer.get_submodule(norm) is not None


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_every_matrix_of_a_layer_is_a_part(kind):
    """A gate that is no part would be left alone by ``reinit``, and no certificate would tell."""
    family = adapt(tiny_model(kind, "mlm"))
    matrices = {name for name, v in family.layers[1].named_parameters() if v.dim() == 2}
    assert {f"{part.path}.weight" for part in family.parts} == matrices


@pytest.mark.parametrize("kind", FAMILY_TYPES)
def test_the_heads_norm_makes_the_features(kind):
    """Twice its weight and bias are twice the features, so it is the last step."""
    family = adapt(tiny_model(kind, "mlm"))
    if kind == "eurobert":  # its head is a matrix alone
        with pytest.raises(RequestError, match="eurobert models has no norm"):
            family.mlm_norm()
        return
    states = torch.randn(4, family.shape.width)
    with torch.no_grad():
        before = family.mlm_features(states)
        for parameter in family.mlm_norm().parameters():
            parameter.mul_(2)
        after = family.mlm_features(states)
    assert before.abs().max() > 0
    assert torch.allclose(after, 2 * before, rtol=1e-4, atol=1e-6)
