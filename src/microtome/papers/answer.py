"""What rows say of a paper's claim: words, a number with its interval, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "doesn't hold", "can't tell"]
Unit = Literal["points", "%", ""]
HOLDS: Verdict = "holds"
DOESNT_HOLD: Verdict = "doesn't hold"
CANT_TELL: Verdict = "can't tell"


@dataclass(frozen=True)
class Answer:
    """A claim, answered from rows.

    ``verdict`` is None on a task or model that the claim isn't about: then the numbers are given
    alone. ``value`` is what the verdict was decided by, ``low`` and ``high`` the ends of its
    interval; shares and differences of scores are 0–1 here, and ``unit`` says how they are shown.
    Where ``learnt`` is False the model hasn't learnt its task, and pooled answers leave it out.
    """

    words: str
    verdict: Verdict | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: Unit = "points"
    learnt: bool = True

    def __str__(self) -> str:
        """As one text, the verdict first."""
        return f"{self.verdict}: {self.words}" if self.verdict else self.words

    @property
    def interval(self) -> str:
        """The interval in words, −1.1 to +0.3, 12.0 % to 14.1 %; empty where there is none.

        Ends that read alike are one number.
        """
        if self.low is None or self.high is None:
            return ""
        return " to ".join(dict.fromkeys([self._shown(self.low), self._shown(self.high)]))

    def _shown(self, number: float) -> str:
        if self.unit == "points":
            text = f"{round(100 * number, 1) + 0.0:+.1f}"  # + 0.0: no zero with a minus
        elif self.unit == "%":
            text = f"{100 * number:.1f} %"
        else:
            text = f"{round(number, 2) + 0.0:.2f}"
        return text.replace("-", "−")
