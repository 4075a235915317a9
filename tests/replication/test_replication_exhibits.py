"""The papers' exhibits as data: complete, known to the interpreter, and possible at every scale."""

from __future__ import annotations

import pytest

from microtome.experiments import find_experiment
from microtome.experiments.kit.layers import layers_of
from microtome.models.source import resolve
from microtome.papers import CLAIMS
from microtome.papers.exhibit import SCALES
from microtome.papers.exhibits import PAPERS
from microtome.replication.answers import ABOUT_FINE_TUNED
from microtome.replication.drawings import DRAWINGS
from microtome.replication.planning import settings_for
from microtome.replication.pooling import OVER_ROWS, POOLED
from microtome.tasks import find_task

# The figures and tables that the papers have, and sections that make a claim by themselves.
EXHIBITS = {
    "kao2020": "Figure 2, Figure 3, Table 1, Figure 4, Figure 5, Figure 8, Table 2, Figure 6a,"
    " Figure 6b, Figure 7a, Figure 7b, Table 3",
    "kao2021": "Table 1, Figure 2, Figure 3, Table 2, Section 4.1, Figure 4, Figure 5, Table 3,"
    " Table 4, Table 5, Table 6, Figure 6, Figure 7, Figure 8, Rules 1 and 2, Abstract",
    "singh2020": "Table 1, Figure 1 a, Figure 1 b, Figure 1 c, Figure 1 d, Figure 2 a, Figure 2 b,"
    " Figure 3 a, Figure 3 b, Figure 5 a, Figure 5 b",
    "kovaleva2019": "Figure atttypes, Figure attentionbydataset, Figure framenet,"
    " Figure framenetresults, Figure cosine, Table glue-results, Figure 5,"
    " Figure cls, Figure disableheadsall,"
    " Figure disablelayers, Discussion",
}
WORKS = [(p.key, e, w) for p in PAPERS.values() for e in p.exhibits for w in e.work]


@pytest.mark.parametrize("key", PAPERS)
def test_every_figure_and_table_is_there_once(key):
    names = [exhibit.name for exhibit in PAPERS[key].exhibits]
    assert sorted(names) == sorted(EXHIBITS[key].split(", "))


def test_every_claim_belongs_to_an_exhibit_of_its_paper():
    shown = {
        (paper.source, claim)
        for paper in PAPERS.values()
        for exhibit in paper.exhibits
        for claim in exhibit.claims
    }
    known = {(claim.experiment, claim.key) for claim in CLAIMS}
    assert {claim for _, claim in shown} <= known
    assert [c for c in CLAIMS if (c.paper, (c.experiment, c.key)) not in shown] == []
    assert {*POOLED, *OVER_ROWS, *ABOUT_FINE_TUNED} <= known


def test_every_drawing_is_known_and_used():
    used = {exhibit.drawing for paper in PAPERS.values() for exhibit in paper.exhibits}
    assert used == set(DRAWINGS)


@pytest.mark.parametrize("model", ["nano-bert", "nano-albert"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("paper", "exhibit", "work"), WORKS, ids=lambda each: str(each)[:20])
def test_an_experiment_knows_the_settings_of_every_scale(paper, exhibit, work, scale, model):
    settings = settings_for(work, scale, layers_of(resolve(model).path))
    found = find_experiment(work.experiment).settings(settings)
    if "counts" in settings:
        assert set(found["counts"]) <= set(range(13))
        assert {0, 12} <= set(found["counts"])
    if "layers" in settings and work.experiment == "duplication":
        assert min(found["layers"]) == 13


@pytest.mark.parametrize("key", PAPERS)
def test_tasks_have_names_and_stand_ins_are_embedded_and_of_the_same_kind(key):
    paper = PAPERS[key]
    for exhibit in paper.exhibits:
        assert all(find_task(task) for task in exhibit.shown_tasks)
        assert {t for w in exhibit.work for t in w.tasks} >= set(exhibit.shown_tasks) or (
            not exhibit.work
        )
    for task, stand_in in paper.stand_ins.items():
        assert find_task(stand_in).embedded
        assert find_task(stand_in).kind == find_task(task).kind
