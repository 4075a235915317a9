"""Frame relations: the finding and the claims, from rows made by hand."""

from __future__ import annotations

from microtome.experiments.kovaleva.frame_relations.claims import claims
from microtome.experiments.kovaleva.frame_relations.report import finding


def row(head, p_max, delta=None, low=None, p=1.0, **columns):
    return {
        "direction": "predicate→element", "layer": 0, "head": head, "p_max": p_max,
        "excess": 0.1, "excess_low": 0.05, "excess_high": 0.15, "score": 0.3, "control": 0.2,
        "stripe_control": None, "count_control": 0.1, "n": 50, "delta": delta,
        "delta_low": low, "delta_high": 0.01, "delta_p_holm": p, "metric": "accuracy",
        **columns,
    }  # fmt: skip


def test_the_finding_leads_with_how_many_heads_follow_links():
    quiet = [row(head, 0.9) for head in range(1, 40)]
    beyond = "frame links beyond their offset (placement test, 5 %, over all heads)"
    assert finding(quiet).startswith(f"None of 39 heads follows {beyond}. Over 50")
    single = [row(0, 0.01, -0.004, -0.011), *quiet]
    assert finding(single).startswith(
        f"1 of 40 heads follows {beyond}: 0.0 +10.0 points (+5.0 to +15.0). Over 50 exemplars"
    )
    cost = "Disabling them changes the accuracy by: 0.0 −0.4 points (−1.1 to +1.0)."
    assert finding(single).endswith(cost)


def test_a_model_that_has_learnt_nothing_is_not_compared_with():
    """Its heads change nothing, and the paper's claim would hold for the wrong reason."""
    quiet = [row(head, 0.9) for head in range(1, 40)]
    answers = {"value": 0.6, "constant_value": 0.6, "one_answer": True}
    rows = [row(0, 0.01, 0.0, -0.001, **answers), *quiet]
    assert "The model hasn't learnt the task: its accuracy is 60.0 %" in finding(rows)
    assert "Disabling them" not in finding(rows)
    assert str(claims(rows)["importance"]).startswith(
        "can't tell: The model hasn't learnt the task"
    )
    rows[0] |= {"value": 0.8, "one_answer": False}
    assert "the accuracy (80.0 % with all heads, one constant answer: 60.0 %) by" in finding(rows)
    assert str(claims(rows)["importance"]).startswith("holds")


def test_claims_are_judged_from_rows():
    quiet = [row(head, 0.9) for head in range(2, 144)]
    assert str(claims(quiet)["heads"]).startswith("can't tell")
    few = [row(0, 0.01, -0.001, -0.005), row(1, 0.01, 0.0, -0.005), *quiet]
    assert str(claims(few)["heads"]).startswith("holds: 2 of 144")  # Wilson: at most 4.9 %
    assert str(claims(few[:40])["heads"]).startswith("can't tell: 2 of 40")  # 1.4 to 16.5 %
    assert str(claims(few)["importance"]).startswith("holds")
    unsure = [row(0, 0.01, -0.01, -0.05), *quiet]
    assert str(claims(unsure)["importance"]).startswith("can't tell")
    assert "none lowers the accuracy" in str(claims(unsure)["importance"])
    needed = [row(0, 0.01, -0.1, -0.15, p=0.001), *quiet]
    assert str(claims(needed)["importance"]).startswith("doesn't hold")
    assert "1 lowers the accuracy" in str(claims(needed)["importance"])
    many = [row(head, 0.01) for head in range(30)]
    assert str(claims(many)["heads"]).startswith("doesn't hold")
