"""How long a replication takes, about: operations of its trials, at the speed of common machines.

Trials count the layers that they apply to all measured rows. What a layer does to a row is known
from the model's weights and the length of the texts; how fast that goes is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtome.experiments.kit.layers import layers_of, work_of_a_row
from microtome.replication.planning import Plan
from microtome.runs.progress import in_words

CORE_OPERATIONS = 2.5e10  # a second, of one core at small matrices
GPU_OPERATIONS = 2e13
OVERHEAD = 1.0  # seconds of a trial: opening the model and the rows, comparing, storing


@dataclass(frozen=True)
class Estimate:
    """Trials, and hours on one core and on one GPU."""

    n_trials: int
    n_trainings: int
    core_hours: float
    gpu_hours: float

    def __str__(self) -> str:
        core, gpu = (in_words(3600 * hours) for hours in (self.core_hours, self.gpu_hours))
        return (
            f"{self.n_trials:,} trials, {self.n_trainings:,} of them trainings; about {core} of one"
            f" core, or {gpu} of a GPU"
        )

    def as_json(self) -> dict[str, object]:
        """As ``replicate --plan --json`` prints it."""
        return {
            "trials": self.n_trials,
            "trainings": self.n_trainings,
            "core_hours": round(self.core_hours, 3),
            "gpu_hours": round(self.gpu_hours, 3),
        }


def estimate(plan: Plan) -> Estimate:
    """Of every distinct trial, what its layers take on its rows."""
    subjects = plan.replication.subjects
    trials = {trial.hash: trial for trial in plan.trials}
    by_subject = {key: work_of_a_row(one) for key, one in subjects.items() if one.opened}
    operations = 0.0
    for trial in trials.values():
        key = (trial.columns["model"], trial.columns["task"])
        if key in by_subject:
            subject = subjects[key]
            layers = layers_of(subject.model_path).count
            operations += trial.work * len(subject.dataset) * by_subject[key] / layers
    idle = OVERHEAD * len(trials)
    n_trainings = sum(trial.name == "finetuning.train" for trial in trials.values())
    return Estimate(
        len(trials) + len(plan.stored), n_trainings, (operations / CORE_OPERATIONS + idle) / 3600,
        (operations / GPU_OPERATIONS + idle) / 3600,
    )  # fmt: skip
