"""An edit on the explorer's page: a text's new predictions, and the new score of 200 rows.

A classifier of 12 layers of width 384 with random weights. Every round has other edits: a removed
layer, a disabled head, both, each low and high in the stack, as a person would try them. The bars:
predictions within 300 ms, the score within 3 s, on two cores.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from kit.measuring import Bar, Clock, Row, finish, options
from kit.workloads import classifier
from microtome.explorer.session import Session, SessionRequest
from microtome.models import load_tokenizer
from microtome.tasks import DataSpec

TEXT = "The engineer did not like the bridge, but the mayor praised it at length."
EDITS = ("remove(2)", "disable(9.3)", "remove(10)", "remove(5) | disable(1.7)", "duplicate(6)")
BAR_TEXT, BAR_SCORE = 0.3, 3.0
N_ROWS = 200


def opened(folder: Path) -> Session:
    model = classifier("12x384")
    model.save_pretrained(folder)
    tokenizer = load_tokenizer("minilm")
    assert tokenizer is not None
    tokenizer.save_pretrained(folder)
    return Session(SessionRequest(str(folder), DataSpec("micro-sentiment", limit=N_ROWS)))


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    with tempfile.TemporaryDirectory() as place:
        session = opened(Path(place))
        session.score(session.rules.read("")[0], lambda done, total: None)  # the base, once
        # Each edit in turn: what is asked is never on the table already.
        edits = itertools.cycle(session.rules.read(text)[0] for text in EDITS)
        works = {
            "text": lambda: session.text(TEXT, None, next(edits)),
            "score": lambda: session.score(next(edits), lambda done, total: None),
        }
        seconds = clock.rounds(works, max(given.rounds, len(EDITS)))
    rows = [
        Row(
            f"{work} after an edit", seconds[work],
            bars=[Bar("seconds", seconds[work], bar, at_least=False, asserted=False)],
        )
        for work, bar in (("text", BAR_TEXT), ("score", BAR_SCORE))
    ]  # fmt: skip
    rows[-1].notes = clock.how_often()
    finish("explorer", rows, given)


if __name__ == "__main__":
    main()
