"""Output-layer decoding (Kao et al. 2020, section 2; 2021, sections 3.1 and 4.1).

An unmasked text goes in, and the state at every depth is decoded with the model's own pre-trained
MLM head; the share of tokens that come back is the token accuracy at that depth. The papers report
more than 80 % at most inner depths of most models, and argue that the residual path alone can't
explain it. So the control is always drawn: the same embeddings and head around random blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from microtome.experiments.experiment import Experiment, Rows, percent
from microtome.experiments.options import Option
from microtome.experiments.subject import Subject, opened_model, opened_rows
from microtome.runs import Context, Result, Trial
from microtome.views import Curve, Sentences, Series, View

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.observe import Decoding, Encoded

NAME = "decoding"
CLEAR = 0.1  # how far the curve must lie above its control before anything is claimed


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """One pass gives every depth."""
    request = {"readout": settings["readout"], "special": settings["special"]}
    return [subject.trial("decoding:measure", NAME, request, label=f"decode {subject.model}")]


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Token accuracy at every depth, and what each depth makes of the first text."""
    from microtome.evaluation import encode_for
    from microtome.observe import decoded_ids, depth_rows, vocabulary_of

    model, tokenizer = opened_model(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    found, control = decoded(
        model, tokenizer, encoded, readout=request["readout"], special=request["special"]
    )
    vocabulary = vocabulary_of(tokenizer)
    first = encoded.row(0).tolist()
    sentences = decoded_ids(model, first, readout=request["readout"])
    rows = [
        {
            "layers": found.n_depths - 1,
            **row,
            "readout": found.readout,
            "n": found.n_tokens,
            "input": " ".join(map(vocabulary.token, first)),
            "decoded": " ".join(map(vocabulary.token, best)),
        }
        for row, best in zip(
            depth_rows(found, control, clusters=dataset.clusters), sentences, strict=True
        )
    ]
    return Result(rows=rows, summary={"last depth": rows[-1]["accuracy"]})


def decoded(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    encoded: Encoded,
    *,
    readout: str = "auto",
    graft: PreTrainedModel | None = None,
    special: bool = False,
) -> tuple[Decoding, Decoding]:
    """The model's decoding and its control's, read through the same head."""
    from microtome.families import adapt
    from microtome.observe import decode, readout_of, vocabulary_of

    vocabulary = vocabulary_of(tokenizer)
    head = readout_of(adapt(model), readout, graft=graft)
    found = decode(model, encoded, vocabulary, readout=head, special=special)
    return found, decode(random_blocks(model), encoded, vocabulary, readout=head, special=special)


def random_blocks(model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """The control: the same embeddings and head, every block drawn afresh."""
    from microtome.edits import Reinit
    from microtome.families import adapt

    blocks = f"0-{adapt(model).shape.n_layers - 1}"
    return Reinit(blocks, seed=seed, parts="all")(model)


def views(rows: Rows) -> tuple[View, ...]:
    """The curve with its control, and the first text at every depth."""
    depths = tuple(float(row["depth"]) for row in rows)
    curve = Curve(
        title="Tokens that come back at every depth",
        x_label="depth",
        y_label="token accuracy",
        series=(
            Series(
                f"decoded ({rows[0]['readout']})",
                depths,
                tuple(row["accuracy"] for row in rows),
                tuple(row["low"] for row in rows),
                tuple(row["high"] for row in rows),
            ),
            Series(
                "token behind [CLS]",
                depths,
                tuple(row["first_token_accuracy"] for row in rows),
            ),
            Series(
                "control: random blocks",
                depths,
                tuple(row["control"] for row in rows),
                is_control=True,
            ),
        ),
    )
    sentences = Sentences(
        title="One text, decoded at every depth",
        tokens=tuple(rows[0]["input"].split(" ")),
        decoded=tuple((f"depth {r['depth']}", tuple(r["decoded"].split(" "))) for r in rows),
    )
    return curve, sentences


def finding(rows: Rows) -> str:
    """Which depths speak the output layer's language, beside what the control does."""
    readout = rows[0]["readout"]
    inner = [row for row in rows if 0 < row["depth"] < rows[-1]["layers"]]
    high = [row for row in inner if row["accuracy"] >= 0.8]
    above = [row for row in inner if row["accuracy"] - row["control"] >= CLEAR]
    last = rows[-1]
    words = (
        f"Read through the {readout} readout, {len(high)} of {len(inner)} inner depths give back at"
        f" least 80 % of the tokens; the last depth gives back {percent(last['accuracy'])}."
    )
    if len(above) < len(inner) / 2:
        return (
            f"{words} Random blocks do as well at {len(inner) - len(above)} of {len(inner)} inner"
            " depths: this shows the residual path, and nothing is claimed about the layers."
        )
    return f"{words} Random blocks lie clearly below at {len(above)} of {len(inner)} inner depths."


def summary(rows: Rows) -> dict[str, Any]:
    """The ends of the curve."""
    return {
        "readout": rows[0]["readout"],
        "accuracy_last": rows[-1]["accuracy"],
        "control_last": rows[-1]["control"],
        "first_token_last": rows[-1]["first_token_accuracy"],
    }


EXPERIMENT = Experiment(
    name=NAME,
    section="Kao et al. 2020, section 2; 2021, section 3.1",
    question="Which depths already speak the language of the output layer?",
    method=__doc__ or "",
    columns=("layers", "depth", "accuracy", "first_token_accuracy", "low", "high"),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    options=(
        Option("readout", "auto", "auto, mlm (the model's own head) or tied"),
        Option("special", False, "count special tokens and [UNK] too", "flag"),
    ),
)
