"""J5: fine-tuning steps on packed rows, against Trainer with dynamic padding and with pad-128."""

from __future__ import annotations

import copy
import tempfile

import numpy as np
import torch
from transformers import BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

from kit import rivals, workloads
from kit.measuring import Bar, Clock, Row, finish, options, peak_mb, reached
from microtome.families import adapt
from microtome.observe.texts import select_texts
from microtome.training.finetune.examples import Examples
from microtome.training.finetune.forward import logits_of
from microtome.training.finetune.loop import computing, train
from microtome.training.finetune.losses import summed_loss
from microtome.training.recipe import Recipe, Seeds

BATCH = 32
N_COMPARED = 8  # rows whose loss and gradients must equal transformers'
N_STEPS = {"minilm": 3, "base": 1}
RECIPE = Recipe(learning_rate=2e-5, batch_size=BATCH, epochs=1)


def examples(n_rows: int) -> tuple[Examples, str]:
    lengths, origin = workloads.lengths("sst2", n_rows)
    texts = workloads.texts(lengths)
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 2, n_rows))
    return Examples("classification", texts, labels), origin


def padded(own: Examples, rows: np.ndarray, to: int | None) -> dict[str, torch.Tensor]:
    chosen, _ = select_texts(own.texts, rows)
    return rivals.padded(chosen, to) | {"labels": own.targets[torch.from_numpy(rows)]}


def trainer(model: BertForSequenceClassification, own: Examples, to: int | None) -> Trainer:
    """As its users set it up; fused AdamW is its default, too."""
    made = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            per_device_train_batch_size=BATCH,
            num_train_epochs=1,
            learning_rate=2e-5,
            warmup_steps=0.1,
            weight_decay=0.01,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=list(range(len(own))),
        data_collator=lambda rows: padded(own, np.array(rows), to),
    )
    made.remove_callback(PrinterCallback)  # stdout is for the figures
    return made


def check_equality(shape: str, own: Examples) -> float:
    """Loss and gradients of a small batch without dropout; gives the largest difference."""
    torch.manual_seed(0)
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = BertForSequenceClassification(workloads.config(shape, num_labels=2, **still)).train()
    rows = np.arange(N_COMPARED)
    chunk, targets = own.batch(rows)
    with computing(adapt(model), RECIPE.precision):
        summed = summed_loss("classification", logits_of(adapt(model), chunk), targets, chunk)
    loss = summed / N_COMPARED
    loss.backward()
    ours = {name: value.grad.to_dense() for name, value in model.named_parameters()}
    model.zero_grad()
    theirs = model(**padded(own, rows, None)).loss
    theirs.backward()
    assert abs(float(loss.detach()) - float(theirs.detach())) < 1e-5, (loss, theirs)
    largest = max(float(value.grad.abs().max()) for _, value in model.named_parameters())
    difference = max(
        float((ours[name] - value.grad).abs().max()) for name, value in model.named_parameters()
    )
    assert difference < 1e-5 * max(1.0, largest), (difference, largest)
    return difference


def flops(shape: str, n_tokens: int) -> float:
    """Forward and back; the last layer's feed-forward is for [CLS] alone."""
    sizes = workloads.SHAPES[shape]
    width, inner, n_layers = (
        sizes[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")
    )
    whole = 4 * width**2 + 2 * width * inner
    return 3 * 2 * n_tokens * ((n_layers - 1) * whole + 3 * width**2)


def steps(shape: str, clock: Clock, n_rounds: int) -> Row:
    n_steps = N_STEPS[shape]
    own, origin = examples(BATCH * n_steps)
    difference = check_equality(shape, own)
    model = workloads.classifier(shape)
    plain = copy.deepcopy(model)
    dynamic, naive = trainer(plain, own, None), trainer(plain, own, rivals.NAIVE_LENGTH)

    def ours() -> None:
        train(model, own, RECIPE, seeds=Seeds.of(0))

    ours()
    timed = clock.rounds(
        {"ours": ours, "Trainer dynamic": dynamic.train, "Trainer pad-128": naive.train}, n_rounds
    )
    n_tokens = len(own.texts.ids)
    row = Row(
        f"J5 fine-tuning, {n_steps} steps of {BATCH}, {shape}, sst2 lengths",
        timed["ours"],
        {name: timed[name] for name in ("Trainer dynamic", "Trainer pad-128")},
        roofline=flops(shape, n_tokens) / timed["ours"] / timed["mm"],
        peak_mb=peak_mb(ours),
        notes=f"{n_tokens} tokens, {origin}; gradients within {difference:.0e} of transformers'",
    )
    row.bars = [
        Bar("vs Trainer dynamic", row.ratios["Trainer dynamic"], reached(2.3, 1.7)),
        Bar("vs Trainer pad-128", row.ratios["Trainer pad-128"], 4.0),
    ]
    return row


def main() -> None:
    given = options(__doc__)
    clock = Clock(given.clock)
    rows = [steps(shape, clock, given.rounds) for shape in ("minilm", "base")]
    finish("training_steps", rows, given)


if __name__ == "__main__":
    main()
