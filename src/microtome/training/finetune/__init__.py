"""Fine-tuning: from a name and rows to a checkpoint folder."""

from __future__ import annotations

from microtome.training.finetune.finetuned import Finetuned
from microtome.training.finetune.finetuning import finetune
from microtome.training.finetune.loop import Outcome, Step, train
from microtome.training.finetune.state import Epoch

__all__ = ["Epoch", "Finetuned", "Outcome", "Step", "finetune", "train"]
