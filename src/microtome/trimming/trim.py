"""From a model and data to a smaller model in a folder: one resumable run, a choice, a proof."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from transformers import PreTrainedModel

from microtome.edits import Vocabulary
from microtome.errors import RequestError
from microtome.experiments import Subject, find_experiment
from microtome.experiments.field.trim.choice import Wish, base_of, cuts_of, recommended
from microtome.experiments.field.trim.healing import HEALED
from microtome.experiments.field.trim.judging import HalvedRows
from microtome.experiments.field.trim.plan import TRIM, measured_apart
from microtome.experiments.field.trim.report import elsewhere, sentence
from microtome.experiments.kit.stored_predictions import stored_arrays
from microtome.experiments.kit.subject import CHECKPOINT
from microtome.experiments.kit.wording import change
from microtome.models import cost, load, tokenizer_of
from microtome.models.folders import check_empty
from microtome.models.provenance import HISTORY
from microtome.report import html_of, write
from microtome.report.page import Page
from microtome.runs import RunResult
from microtome.study import Study, Wanted, Workers, study
from microtome.tasks.data_spec import DataSpec
from microtome.trimming.page import is_stored_choice, store_choice, trim_page
from microtome.trimming.saving import save_cut
from microtome.views import TidyRow, TidyRows


@dataclass(frozen=True)
class TrimRequest:
    """A trim that is about to run: ``folder`` is the run's, ``out`` the chosen model's."""

    subject: Subject
    settings: Mapping[str, Any]
    folder: Path
    out: Path
    wish: Wish
    vocabulary: Path | None


@dataclass(frozen=True)
class Trimmed:
    """A finished trim: the cuts, the one that was chosen and saved, and the report."""

    study: Study
    page: Page
    report: Path
    rows: TidyRows
    chosen: TidyRow | None
    out: Path | None

    @property
    def finding(self) -> str:
        """The answer in a sentence."""
        return self.page.answers[0]

    def as_json(self) -> dict[str, Any]:
        """What ``trim --json`` prints."""
        return {
            "model": self.study.subject.model,
            "task": self.study.subject.task,
            "run": str(self.study.folder),
            "report": str(self.report),
            "primary": base_of(self.rows)["metric"],
            "baseline": as_cut(base_of(self.rows)),
            "cuts": [as_cut(row) for row in cuts_of(self.rows)],
            "recommended": None if self.chosen is None else as_cut(self.chosen),
            "out": None if self.out is None else str(self.out),
            "finding": self.finding,
            "notes": list(self.page.notes),
        }

    def _repr_html_(self) -> str:
        """In a notebook: the sentence and the frontier."""
        return html_of(*self.page.front, title=self.page.title, texts=self.page.answers)


def as_cut(row: TidyRow) -> dict[str, Any]:
    """A row as a script reads it."""
    return {
        "edit": row["edit"], "layers": row["layers"], "healed": row["healed"],
        "score": row["value"], "low": row["value_low"], "high": row["value_high"],
        "change": row["delta"], "change_low": row["low"], "change_high": row["high"],
        "parameters": row["parameters"], "bytes": row["bytes"], "speed": row["speed"],
        "latency_ms": row["latency_ms"], "batch_ms": row["batch_ms"],
        "on_frontier": row["on_frontier"],
    }  # fmt: skip


def request(
    model: str,
    data: DataSpec,
    out: Path,
    *,
    lose: float | None = None,
    speed: float | None = None,
    vocabulary: Path | None = None,
    folder: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    revision: str | None = None,
) -> TrimRequest:
    """What is to be trimmed, with the defaults filled in; what can't work is refused.

    ``lose`` is in points of the primary metric (1 unless a ``speed`` is asked for). ``settings``
    are the options of the experiment ``trim``. The run is stored in ``folder``, ``OUT.trim`` unless
    given: another wish there chooses anew among what is healed already.

        done = trim(request("minilm", DataSpec("stsb", "glue/STS-B"), Path("small")))
    """
    if lose is not None and not 0 <= lose < math.inf:
        raise RequestError(f"--lose must be 0 or more points, got {lose:g}")
    if speed is not None and not 0 < speed < math.inf:
        raise RequestError(f"--speed must be above 0, as 2x, got {speed:g}")
    if vocabulary is not None and not vocabulary.is_file():
        raise RequestError(f"--vocabulary expects a file of texts, got {vocabulary}")
    if lose is None and speed is None:
        lose = 1.0
    out = out.expanduser()
    place = folder or out.with_name(f"{out.name}.trim")
    wish = Wish(None if lose is None else lose / 100, speed)
    if not is_stored_choice(place, wish, out, vocabulary):
        check_empty(out)
    experiment = find_experiment(TRIM)
    asked = {name: value for name, value in (settings or {}).items() if value is not None}
    subject = experiment.subject(model, data, asked, revision=revision)
    if vocabulary is not None:  # what it can't do is better known before the healing
        Vocabulary(vocabulary)(load(subject.model_path, head="saved"))
    return TrimRequest(subject, asked, place, out, wish, vocabulary)


def trim(wanted: TrimRequest, *, workers: Workers | None = None) -> Trimmed:
    """Run what isn't done yet, choose by the wish, and save the chosen cut with its proof."""
    asked = [Wanted(TRIM, wanted.settings)]
    done = study(wanted.subject, asked, wanted.folder, workers=workers, kind=TRIM)
    done.check()
    rows = done.part(TRIM).rows
    chosen = recommended(rows, wanted.wish)
    out = None if chosen is None else wanted.out
    choice = (wanted.folder, wanted.wish, out, wanted.vocabulary)
    if not is_stored_choice(*choice):
        store_choice(*choice)
    if chosen is not None and not (wanted.out / HISTORY).is_file():
        _save(wanted, done.result, rows, chosen)
    page = trim_page(done.result)
    return Trimmed(done, page, write(page, wanted.folder), rows, chosen, out)


def _save(wanted: TrimRequest, result: RunResult, rows: TidyRows, chosen: TidyRow) -> None:
    """Write the chosen cut; with a smaller vocabulary it is scored again, as it is saved."""
    told = [f"On {wanted.subject.task}: {sentence(rows, wanted.wish)}", elsewhere(rows, chosen)]

    def scores(model: PreTrainedModel) -> str:
        if wanted.vocabulary is None:
            return " ".join(filter(None, told))
        again = scored_again(model, wanted.subject, wanted.settings, stored_answers(result))
        again = f"With the smaller vocabulary: {again}."
        store_choice(wanted.folder, wanted.wish, wanted.out, wanted.vocabulary, again)
        return " ".join(filter(None, [*told, again]))

    save_cut(
        _base_folder(result) or wanted.subject.model_path, chosen["edit"],
        _healed_folder(result, chosen) if chosen["healed"] else None, wanted.out,
        vocabulary=wanted.vocabulary, pooling=wanted.subject.data.pooling, scores=scores,
    )  # fmt: skip


def scored_again(
    model: PreTrainedModel,
    subject: Subject,
    settings: Mapping[str, Any],
    base_answers: NDArray[Any],
) -> str:
    """The change of a model from the base on the rows that score, in words."""
    experiment = find_experiment(TRIM)
    apart = measured_apart(subject, experiment.settings(settings))
    tokenizer = tokenizer_of(model)
    assert tokenizer is not None  # its vocabulary was made smaller
    measured = HalvedRows(model, tokenizer, apart.dataset, settings.get("metric"))
    columns = measured.columns(measured.answers(), base_answers)
    size = f"{cost(model).parameters / 1e6:.1f} million parameters"
    return f"{change(columns['delta'], columns['low'], columns['high'])}, {size}"


def stored_answers(result: RunResult) -> NDArray[Any]:
    """The whole model's answers to the measured rows."""
    (screened,) = [one for one in result.records.values() if one.name == "trim.screen"]
    return stored_arrays(result.folder / "arrays" / f"{screened.hash}.npz")["base"]


def _healed_folder(result: RunResult, chosen: TidyRow) -> Path:
    record = next(
        record
        for record in result.records.values()
        if record.name == "trim.heal" and record.rows[0]["edit"] == chosen["edit"]
    )
    return result.folder / "checkpoints" / record.hash / HEALED


def _base_folder(result: RunResult) -> Path | None:
    """The base that was fine-tuned in this run, if it was."""
    trained = [one for one in result.records.values() if one.name == "finetuning.train"]
    if not trained:
        return None
    return result.folder / "checkpoints" / trained[0].hash / CHECKPOINT
