"""The trials of a trim: screen, calibrate, let the base answer, heal, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.edits import parse
from microtome.errors import Diverged, RunError
from microtome.experiments.field.trim.budget import Budget, Times, budget_of
from microtome.experiments.field.trim.candidates import (
    FEW_LAYERS,
    Candidate,
    candidates,
    keeping,
    without_one,
)
from microtome.experiments.field.trim.healing import HEALED, Healing, seconds_per_step
from microtome.experiments.field.trim.judging import HalvedRows, Halves, mark_frontier
from microtome.experiments.field.trim.plan import TEXT, texts_in
from microtome.experiments.kit.layers import edit_to
from microtome.experiments.kit.stored_predictions import (
    score_on,
    stored_arrays,
    stored_timings,
)
from microtome.experiments.kit.subject import POOLING
from microtome.experiments.kit.trial_inputs import (
    is_fine_tuned,
    opened_model,
    opened_rows,
    training_rows,
)
from microtome.families import adapt
from microtome.models.costs import cost
from microtome.models.loading import load
from microtome.observe.outcomes import ordered_answers
from microtome.runs import Context, Need, Result
from microtome.surgery import apply
from microtome.tasks.reading.opening import open_data
from microtome.tasks.task import UNIT_OF
from microtome.training.distil.texts import LessonTexts, without_measured

SCREENED, BASE = "screened", "base"  # stages, besides healing's
ANSWERS = "base_answers"  # an array
TIMED_TEXTS = 256


def screen(request: Mapping[str, Any], context: Context) -> Result:
    """Rank every candidate without training; the best of each size answers all rows."""
    measured = HalvedRows.opened(request, context)
    stack, sizes = adapt(measured.model).stack, request["sizes"]
    search = _Search(measured.to_screen(request["rows_at_most"]), context)
    search.measure(candidates(stack.n_layers, stack.rules, sizes))
    if stack.n_layers > FEW_LAYERS and not stack.rules.shared:
        search.greedily(least=min(sizes))
    ranked = search.ranked(sizes)
    rows = [
        {
            "stage": SCREENED, "edit": one.edit, "layers": size, "healed": False,
            "metric": measured.metric, "primary": measured.metric,
            "pick_value": search.scores[one.edit],
        }
        for size, found in ranked.items()
        for one in found
    ]  # fmt: skip
    best = [found[0].order for found in ranked.values()]
    whole = keeping(range(stack.n_layers), stack.n_layers, stack.rules)
    assert whole is not None  # every family keeps all of its layers
    orders = [whole.order, *best]
    answers = ordered_answers(measured.model, measured.dataset, measured.encoded, orders)
    names = (BASE, *(f"layers_{size}" for size in ranked))
    return Result(rows=rows, arrays=dict(zip(names, answers, strict=True)))


class _Search:
    """Candidates with their scores on the rows that pick."""

    def __init__(self, measured: HalvedRows, context: Context) -> None:
        self.measured, self.context = measured, context
        self.scores: dict[str, float] = {}
        self.found: dict[str, Candidate] = {}

    def measure(self, tried: Sequence[Candidate]) -> None:
        """Score those that weren't scored yet; orders that begin alike share their layers."""
        new = {one.edit: one for one in tried if one.edit not in self.scores}
        if not new:
            return
        m, report = self.measured, self.context.report
        answers = ordered_answers(
            m.model, m.dataset, m.encoded, [one.order for one in new.values()],
            progress=lambda done, n: report(f"{len(new)} cuts: {done} of {n} texts"),
        )  # fmt: skip
        self.found |= new
        self.scores |= {edit: m.score(found) for edit, found in zip(new, answers, strict=True)}

    def greedily(self, *, least: int) -> None:
        """Leave out the layer whose removal costs least, again and again."""
        stack = adapt(self.measured.model).stack
        order: Sequence[int] = range(stack.n_layers)
        while len(order) > least and (tried := without_one(order, stack.n_layers, stack.rules)):
            self.measure(tried)
            order = max(tried, key=lambda one: self.scores[one.edit]).order

    def ranked(self, sizes: Sequence[int]) -> dict[int, list[Candidate]]:
        """The candidates of these sizes, the best of each first."""
        best_first = sorted(self.found.values(), key=lambda one: -self.scores[one.edit])
        by_size = {size: [one for one in best_first if one.layers == size] for size in sizes}
        return {size: found for size, found in by_size.items() if found}


def calibrate(request: Mapping[str, Any], context: Context) -> Result:
    """What a step of every size takes, and an answer of the base: measured once, then fixed."""
    model, tokenizer = opened_model(context)
    texts = _texts(request, context, model, tokenizer)
    n_texts = min(TIMED_TEXTS, texts.n_texts)
    started = time.perf_counter()
    answers = texts.answers(n_texts)
    per_text = (time.perf_counter() - started) / n_texts
    lessons = texts.lessons(n_texts, answers)
    per_step = {}
    for size in request["sizes"]:
        context.report(f"time a step of {size} layers")
        cut = apply(parse(edit_to(size, adapt(model).shape.n_layers)), model)
        per_step[str(size)] = seconds_per_step(cut, lessons, request["batch_size"])
    return Result(summary={"seconds_per_text": per_text, "seconds_per_step": per_step})


def _texts(
    request: Mapping[str, Any], context: Context, base: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
) -> LessonTexts:  # fmt: skip
    """The file of texts that was named, else the training rows with their labels."""
    text = context.where.get(TEXT)
    if text is not None:
        rows = open_data(texts_in(text, request.get("text_column")))
    else:
        rows = training_rows(request, context)[0].fraction(request["fraction"])
    return LessonTexts(base, tokenizer, without_measured(rows, opened_rows(request, context)))


def _budget(request: Mapping[str, Any], context: Context, texts: LessonTexts) -> Budget:
    stored = (need.summary for need in context.needs.values())
    times = next((Times.of(one) for one in stored if "seconds_per_text" in one), None)
    return budget_of(request, times, texts.n_texts)


def answer(request: Mapping[str, Any], context: Context) -> Result:
    """The base's answers to the texts that are healed on, computed once for all sizes."""
    model, tokenizer = opened_model(context)
    texts = _texts(request, context, model, tokenizer)
    n_texts = _budget(request, context, texts).n_texts
    context.report(f"{n_texts:,} texts")
    return Result(arrays={ANSWERS: texts.answers(n_texts)}, summary={"texts": n_texts})


def heal(request: Mapping[str, Any], context: Context) -> Result:
    """The best cuts of one size learn to answer as the base does; the best of them is kept."""
    measured, size = HalvedRows.opened(request, context), request["layers"]
    contest = measured.to_screen(request["rows_at_most"])
    healing, budget = _healing(
        request, context, measured, lambda model: contest.score(contest.answers(model))
    )
    ranked = _screened(context, size)
    done = healing.run(ranked, budget.steps[size])
    about = {
        "stage": HEALED, "layers": size, "healed": True, "metric": measured.metric,
        "primary": measured.metric, "texts": budget.n_texts, "contenders": done.contenders,
    }  # fmt: skip
    if done.model is None:
        return Result(rows=[{**about, "edit": ranked[0], "steps": 0, "diverged": done.problem}])
    answers = measured.answers(done.model)
    score = score_on(measured.outcome(answers, measured.metric), measured.halves.picking)
    row = {**about, "edit": done.edit, "steps": done.steps, "pick_value": score, "diverged": None}
    return Result(
        rows=[row], arrays={HEALED: answers}, checkpoint=True, summary={measured.metric: score}
    )


def _healing(
    request: Mapping[str, Any], context: Context, measured: HalvedRows,
    pick_score: Callable[[PreTrainedModel], float],
) -> tuple[Healing, Budget]:  # fmt: skip
    """How cuts are healed by the base's stored answers, and for how many steps."""
    texts = _texts(request, context, measured.model, measured.tokenizer)
    budget = _budget(request, context, texts)
    lessons = texts.lessons(budget.n_texts, _need_with(context, ANSWERS)[ANSWERS])
    return Healing(measured.model, lessons, request, context, pick_score), budget


def heal_one(request: Mapping[str, Any], context: Context) -> Result:
    """One cut that was named learns to answer as the base does; its answers on all rows."""
    measured = HalvedRows.opened(request, context)
    healing, budget = _healing(request, context, measured, lambda model: 0.0)
    (size,) = request["sizes"]
    done = healing.run([request["edit"]], budget.steps[size])
    if done.model is None:
        raise Diverged(done.problem)
    return Result(arrays={HEALED: measured.answers(done.model)}, summary={"edit": done.edit})


def judge(request: Mapping[str, Any], context: Context) -> Result:
    """Base and cuts on the half of the rows that nothing was picked on, with their prices."""
    measured = HalvedRows.opened(request, context)
    stored, timings = _need_with(context, BASE), stored_timings(context)
    about = {
        "stage": "judged", "unit": UNIT_OF.get(measured.dataset.task.kind, "rows"),
        "fine_tuned": is_fine_tuned(context),
    }  # fmt: skip

    def row(edit: str, answers: NDArray[Any], **more: object) -> dict[str, Any]:
        model = apply(parse(edit), measured.model) if edit else measured.model
        price, layers = cost(model), adapt(model).shape.n_layers
        return {
            **about, "edit": edit, "layers": layers, **more,
            **measured.columns(answers, stored[BASE]),
            "parameters": price.parameters, "bytes": price.bytes,
            **_times(timings, layers, is_base=not edit),
            **measured.answer_columns(answers, measured.metric),
        }  # fmt: skip

    best = {int(r["layers"]): r["edit"] for r in reversed(_screened_rows(context))}
    rows = [row("", stored[BASE], healed=False, steps=0)]
    rows += [row(e, stored[f"layers_{s}"], healed=False, steps=0) for s, e in best.items()]
    for need, healed in _healed(context):
        assert need.arrays is not None  # it didn't diverge
        answers = stored_arrays(need.arrays)[HEALED]
        rows.append(row(healed["edit"], answers, healed=True, steps=healed["steps"]))
    return Result(rows=mark_frontier(rows), summary={measured.metric: rows[0]["value"]})


def _times(timings: Mapping[int, Any], layers: int, *, is_base: bool) -> dict[str, Any]:
    timing = next(iter(timings.values())) if is_base else timings[layers]
    if is_base:
        base_times = {"latency_ms": timing["base_latency_ms"], "batch_ms": timing["base_batch_ms"]}
        return {"speed": 1.0, **base_times}
    return {name: timing[name] for name in ("speed", "latency_ms", "batch_ms")}


def score_also(request: Mapping[str, Any], context: Context) -> Result:
    """Base and healed cuts on other data: all of its rows, since nothing is picked on them."""
    measured = HalvedRows.opened(request, context)
    every = np.arange(measured.dataset.n_scored)
    measured.halves = Halves(every, every, measured.dataset.scored_clusters)
    base, layers = measured.answers(), adapt(measured.model).shape.n_layers
    whole = {"edit": "", "layers": layers, "healed": False, **measured.columns(base, base)}
    rows = [{"stage": "also", **whole}]
    for need, healed in _healed(context):
        assert need.checkpoint is not None  # it didn't diverge
        pooling = context.where.get(POOLING)
        cut = load(need.checkpoint / HEALED, device=context.device, pooling=pooling)
        about = {name: healed[name] for name in ("edit", "layers", "healed", "steps")}
        picked = dict.fromkeys(("pick_value", "pick_delta", "pick_low"))
        columns = measured.columns(measured.answers(cut), base)
        rows.append({"stage": "also", **about, **columns, **picked})
    return Result(rows=rows)


def _healed(context: Context) -> Iterator[tuple[Need, Mapping[str, Any]]]:
    """The needed trials that healed a cut, each with its row; none that diverged."""
    for need in context.needs.values():
        for row in need.rows:
            if row.get("stage") == HEALED and row["diverged"] is None:
                yield need, row


def _screened_rows(context: Context) -> list[Mapping[str, Any]]:
    rows = (row for need in context.needs.values() for row in need.rows)
    return [row for row in rows if row.get("stage") == SCREENED]


def _screened(context: Context, size: int) -> list[str]:
    """The edits of one size, the best first."""
    return [row["edit"] for row in _screened_rows(context) if row["layers"] == size]


def _need_with(context: Context, name: str) -> Mapping[str, NDArray[Any]]:
    for need in context.needs.values():
        if need.arrays is not None and name in (arrays := stored_arrays(need.arrays)):
            return arrays
    raise RunError(f"no needed trial left {name}")
