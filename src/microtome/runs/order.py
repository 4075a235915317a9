"""The order of trials: what is needed comes first, otherwise as listed."""

from __future__ import annotations

import graphlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from microtome.errors import RequestError
from microtome.runs.trial import Trial


def check_acyclic(needs: Mapping[str, Collection[str]]) -> None:
    """RequestError when trials need each other in a circle."""
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        circle = " → ".join(name[:12] for name in error.args[1])
        raise RequestError(f"trials need each other in a circle: {circle}") from error


def distinct(trials: Iterable[Trial]) -> dict[str, Trial]:
    """The trials by hash, in order; equal ones once."""
    by_hash: dict[str, Trial] = {}
    for trial in trials:
        by_hash.setdefault(trial.hash, trial)
    return by_hash


def check_needs(trials: Mapping[str, Trial], stored: Collection[str]) -> None:
    """Every need must be among the trials or stored in the run, and nothing needs itself."""
    for trial in trials.values():
        for need in trial.needs:
            if need not in trials and need not in stored:
                raise RequestError(
                    f"trial {trial.title} needs {need}, which is neither among the "
                    f"{len(trials)} trials nor in the run",
                    "add the needed trial to the list",
                )
    check_acyclic({trial.hash: trial.needs for trial in trials.values()})


class Agenda:
    """Which trials are ready: their needs are all done."""

    def __init__(self, trials: Sequence[Trial], done: Collection[str]) -> None:
        self._missing = {trial.hash: set(trial.needs).difference(done) for trial in trials}
        self._dependents: dict[str, list[Trial]] = {}
        for trial in trials:
            for need in trial.needs:
                self._dependents.setdefault(need, []).append(trial)
        self.ready = [trial for trial in trials if not self._missing[trial.hash]]

    def done(self, trial_hash: str) -> list[Trial]:
        """The trials that have become ready because ``trial_hash`` is ok."""
        freed = []
        for trial in self._dependents.get(trial_hash, ()):
            missing = self._missing[trial.hash]
            if trial_hash in missing:
                missing.discard(trial_hash)
                if not missing:
                    freed.append(trial)
        return freed

    def blocked_by(self, trial_hash: str) -> list[tuple[Trial, str]]:
        """Every trial that can't run now, directly or through others, with the need it lacks."""
        blocked: dict[str, tuple[Trial, str]] = {}
        frontier = [trial_hash]
        while frontier:
            need = frontier.pop(0)
            for trial in self._dependents.get(need, ()):
                if trial.hash not in blocked:
                    blocked[trial.hash] = (trial, need)
                    frontier.append(trial.hash)
        return list(blocked.values())
