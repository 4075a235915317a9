"""Output-layer decoding (Kao et al. 2020, section 2; 2021, sections 3.1 and 4.1).

An unmasked text goes in, and the state at every depth is decoded with the model's own pre-trained
MLM head; the share of tokens that come back is the token accuracy at that depth. A fine-tuned
encoder is read through the pre-trained head, grafted on; a model with duplicated layers is read at
its last depth. The papers report more than 80 % at most inner depths of most models, that
fine-tuning touches the last layers only, and that ALBERT holds for some layers more. They argue
that the residual path alone can't explain it, so the control is always drawn: the same embeddings
and head around random blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from microtome.errors import RequestError
from microtome.experiments import finetuning
from microtome.experiments.decoding_curves import finding, measured, summary, views
from microtome.experiments.experiment import Experiment
from microtome.experiments.finetuning import Arm, arm_trial
from microtome.experiments.layer_rules import LayerRules, layer_rules
from microtome.experiments.options import Option
from microtome.experiments.readout_choice import (
    GRAFT,
    OPTIONS,
    check_readout,
    donor_of,
    fit_first,
    readout_for,
)
from microtome.experiments.subject import (
    CHECKPOINT,
    MODEL,
    Other,
    Rows,
    Subject,
    opened_rows,
    subject_of,
)
from microtome.runs import Context, Result, Trial
from microtome.values import parse_ranges

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from microtome.observe import Decoding, Encoded, Readout

NAME = "decoding"
ALL = "all"


def find_subject(model: str | None, rows: Rows, settings: Mapping[str, Any]) -> Subject:
    """A file is measured whole, unless the model is to learn from one side of it."""
    if model is None:
        raise RequestError("no model given", "name one: --model MODEL")
    if settings["finetuned"]:
        return subject_of(model, rows, revision=rows.revision)
    alone = subject_of(model, Rows(), revision=rows.revision, needs_rows=False)
    return replace(alone, rows=rows, found=rows.open())


def plan(subject: Subject, settings: Mapping[str, Any]) -> list[Trial]:
    """The curve over depths; those of a related checkpoint and of deeper models if asked for."""
    check_readout(settings)
    donor = donor_of(settings)
    fit = fit_first(subject, NAME, settings)
    request = {"readout": settings["readout"], "special": settings["special"]}
    grafted = {} if donor is None else {GRAFT: donor}
    said = request | {"checkpoint": "finetuned" if subject.has_task_head else "pretrained"}
    label = f"decode {subject.model}"
    curve = subject.trial("decoding:measure", NAME, said, needs=fit, others=grafted, label=label)
    trials = [*fit, curve]
    if donor is not None:
        trials.append(_donor_trial(subject, donor, settings))
    if settings["finetuned"]:
        trials += _finetuned_trials(subject, settings, fit, request)
    if settings["layers"]:
        rules = layer_rules(subject.model_path)
        for layers in _chunks(asked_layers(settings["layers"], rules), rules):
            text = f"{layers[0]}-{layers[-1]}" if len(layers) > 1 else str(layers[0])
            trials.append(
                subject.trial(
                    "decoding:measure_deeper", NAME, said | {"layers": layers}, needs=fit,
                    others=grafted, label=f"decode {subject.model} with {text} layers",
                )
            )  # fmt: skip
    return trials


def _donor_trial(subject: Subject, donor: Other, settings: Mapping[str, Any]) -> Trial:
    """The checkpoint that the head comes from, on the same text, through its own head."""
    before = replace(subject, model_path=donor.path, model_hash=donor.hash)
    said = {"readout": "mlm", "special": settings["special"], "checkpoint": "pretrained"}
    return before.trial("decoding:measure", NAME, said, label=f"decode {settings['graft']}")


def _finetuned_trials(
    subject: Subject, settings: Mapping[str, Any], fit: tuple[Trial, ...], request: dict[str, Any]
) -> list[Trial]:
    """The subject fine-tuned on the task, read through the head that it had before."""
    if subject.has_task_head:
        raise RequestError(
            f"--finetuned given, but {subject.model} is fine-tuned already",
            "name the checkpoint it was fine-tuned from: --graft MODEL",
        )
    label = f"fine-tune {subject.model} on {subject.task}"
    tuned = arm_trial(subject, "finetuning", settings, Arm(keep=True, label=label))
    own = {GRAFT: Other(subject.model_path, subject.model_hash)} if subject.head == "mlm" else {}
    others = own if request["readout"] in ("auto", "mlm") else {}
    said = request | {"checkpoint": "finetuned"}
    label = f"decode {subject.model} fine-tuned"
    needs = (*fit, tuned)
    decode = subject.trial("decoding:measure", NAME, said, needs=needs, others=others, label=label)
    return [tuned, decode]


def asked_layers(text: str, rules: LayerRules) -> list[int]:
    """The numbers of layers that are asked for; ``all`` is as far as the papers went."""
    first = rules.n_layers
    layers = range(first, rules.deepest + 1) if text == ALL else sorted(set(parse_ranges(text)))
    for n_layers in layers:
        rules.check(f"extend({n_layers})")
    return list(layers)


def _chunks(layers: list[int], rules: LayerRules) -> list[list[int]]:
    """A shared layer's states at depth K are the last ones of K layers: one pass gives all."""
    return [layers] if rules.shared else [[n_layers] for n_layers in layers]


def measure(request: Mapping[str, Any], context: Context) -> Result:
    """Token accuracy at every depth, and what each depth makes of the first text."""
    from microtome.evaluation import encode_for, text_clusters
    from microtome.observe import decoded_ids, depth_rows, vocabulary_of

    model, tokenizer = studied(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    readout = readout_for(request, context, model)
    found, control = decoded(model, tokenizer, encoded, readout, special=request["special"])
    vocabulary = vocabulary_of(tokenizer)
    first = encoded.row(0).tolist()
    segments = None if encoded.segments is None else encoded.segments[: len(first)].tolist()
    sentences = decoded_ids(model, first, readout=readout, segments=segments)
    rows = [
        {
            "checkpoint": request["checkpoint"],
            "layers": found.n_depths - 1,
            "edit": "",
            **row,
            "readout": found.readout,
            "n": found.n_tokens,
            "input": " ".join(map(vocabulary.token, first)),
            "decoded": " ".join(map(vocabulary.token, best)),
        }
        for row, best in zip(
            depth_rows(found, control, clusters=text_clusters(dataset, encoded)),
            sentences,
            strict=True,
        )
    ]
    return Result(rows=rows, summary={"last depth": rows[-1]["accuracy"]})


def measure_deeper(request: Mapping[str, Any], context: Context) -> Result:
    """The last state of deeper models: the first layers duplicated, or a shared one applied on."""
    from microtome.edits import parse
    from microtome.evaluation import encode_for, text_clusters
    from microtome.observe import depth_rows

    model, tokenizer = studied(context)
    dataset = opened_rows(request, context)
    encoded = encode_for(model, tokenizer, dataset)
    readout = readout_for(request, context, model)
    layers = request["layers"]
    edit = parse(f"extend({layers[-1]})")
    found, control = decoded(
        edit(model), tokenizer, encoded, readout, special=request["special"],
        control=edit(random_blocks(model)), depths=layers,
    )  # fmt: skip
    rows = [
        {
            "checkpoint": request["checkpoint"],
            "layers": row["depth"],
            "edit": f"extend({row['depth']})",
            **row,
            "readout": found.readout,
            "n": found.n_tokens,
        }
        for row in depth_rows(found, control, clusters=text_clusters(dataset, encoded))
    ]
    return Result(rows=rows, summary={f"{layers[-1]} layers": rows[-1]["accuracy"]})


def studied(context: Context) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model of a trial: the one fine-tuned for it, else the subject's own."""
    from microtome.errors import ModelError
    from microtome.models import load, load_tokenizer

    tuned = [n.checkpoint / CHECKPOINT for n in context.needs.values() if n.checkpoint]
    place = next((str(folder) for folder in tuned if folder.is_dir()), context.where[MODEL])
    tokenizer = load_tokenizer(place)
    if tokenizer is None:
        raise ModelError(f"{place} has no tokenizer", "put tokenizer.json beside the weights")
    return load(place, device=context.device), tokenizer


def decoded(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    encoded: Encoded,
    readout: Readout,
    *,
    special: bool = False,
    control: PreTrainedModel | None = None,
    depths: list[int] | None = None,
) -> tuple[Decoding, Decoding]:
    """The model's decoding and its control's, read through the same head."""
    from microtome.observe import decode, vocabulary_of

    vocabulary = vocabulary_of(tokenizer)
    others = random_blocks(model) if control is None else control
    found, beside = (
        decode(one, encoded, vocabulary, readout=readout, special=special, depths=depths)
        for one in (model, others)
    )
    return found, beside


def random_blocks(model: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """The control: the same embeddings and head, every block drawn afresh."""
    from microtome.edits import Reinit
    from microtome.families import adapt

    blocks = f"0-{adapt(model).shape.n_layers - 1}"
    return Reinit(blocks, seed=seed, parts="all")(model)


EXPERIMENT = Experiment(
    name=NAME,
    section="Kao et al. 2020, section 2; 2021, section 3.1",
    question="Which depths already speak the language of the output layer?",
    method=__doc__ or "",
    columns=("layers", "depth", "accuracy", "first_token_accuracy", "low", "high", "control"),
    plan=plan,
    views=views,
    finding=finding,
    summary=summary,
    measured=measured,
    find_subject=find_subject,
    options=(
        *OPTIONS,
        Option("special", False, "count special tokens and [UNK] too", "flag"),
        Option("layers", "", "also the last state of deeper models: 12-24, or all"),
        Option("finetuned", False, "also the model fine-tuned on the task, same head", "flag"),
        *finetuning.OPTIONS,
    ),
)
