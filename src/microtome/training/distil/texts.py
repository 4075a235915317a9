"""The texts to heal on, as lessons: labelled rows, or plain texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.families import adapt
from microtome.observe.embedding import tokens_to_embed
from microtome.observe.evaluation import encode_for
from microtome.observe.texts import fitted, select_texts
from microtome.tasks import Dataset
from microtome.tasks.encoding.masking import masked
from microtome.tasks.encoding.texts import EMBEDDED_KINDS
from microtome.tasks.scoring.labels import label_map
from microtome.training.distil.lessons import Lessons, base_answers, lessons_of
from microtome.training.distil.losses import Answer, answer_of
from microtome.training.finetune.examples import Examples, examples_of


@dataclass(frozen=True, eq=False)
class LessonTexts:
    """Rows to heal ``base`` on; ``dataset`` is all there is of them."""

    base: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    dataset: Dataset

    @property
    def has_labels(self) -> bool:
        """Whether labels count besides the base's answers.

        An embedder's texts need none, and a number's scale needn't be that of the base's output.
        """
        return self.dataset.task.kind not in (*EMBEDDED_KINDS, "text", "regression")

    @property
    def answer(self) -> Answer:
        """How the base answers them."""
        return answer_of(adapt(self.base), self.dataset.task.kind)

    @property
    def texts_per_row(self) -> int:
        """Two where both texts of a pair are embedded."""
        return 2 if self.dataset.task.kind == "similarity" else 1

    @property
    def n_texts(self) -> int:
        """How many texts there are."""
        corpus = self.dataset.corpus
        n_documents = 0 if corpus is None else len(corpus.positions)
        return self.texts_per_row * len(self.dataset) + n_documents

    def examples(self, n_texts: int) -> Examples:
        """So many texts (seeded, nested) as the training loop takes them."""
        rows = self.dataset.limit(-(-n_texts // self.texts_per_row), seed=0)
        family, kind = adapt(self.base), rows.task.kind
        if kind == "text" and family.embedder is not None:
            prompt = family.embedder.prompt(rows.prompt)
            alone = [row.text for row in rows.rows()]
            embedded = tokens_to_embed(family, self.tokenizer, alone, prompt)
            return Examples(kind, fitted(embedded, family.n_positions), torch.zeros(len(alone)))
        encoded = encode_for(self.base, self.tokenizer, rows)
        if self.has_labels:
            return self._in_order_of_outputs(examples_of(rows, encoded, family))
        if self.answer == "hidden token":
            encoded = masked(encoded, rows, self.tokenizer)
        own = fitted(encoded, family.n_positions)
        if len(own) > n_texts:  # a search's documents come whole
            chosen = np.sort(np.random.default_rng(0).permutation(len(own))[:n_texts])
            own, _ = select_texts(own, chosen)
        return Examples(kind, own, torch.zeros(len(own)))

    def _in_order_of_outputs(self, examples: Examples) -> Examples:
        """Labels as the head's outputs: a checkpoint may have them in another order."""
        task, config = self.dataset.task, self.base.config
        if task.kind not in ("classification", "multilabel"):
            return examples
        order = torch.tensor(label_map(task, config.id2label, config.num_labels)[0])
        targets = examples.targets
        if task.kind == "classification":
            return replace(examples, targets=order[targets])
        return replace(examples, targets=targets[:, torch.argsort(order)])

    def answers(self, n_texts: int) -> NDArray[np.float32]:
        """What the base answers to so many texts."""
        return base_answers(self.base, self.answer, self.examples(n_texts).texts)

    def lessons(self, n_texts: int, answers: NDArray[np.float32]) -> Lessons:
        """So many texts with the base's answers."""
        examples = replace(self.examples(n_texts), pairs=None)
        labelled = self.has_labels
        return lessons_of(self.base, self.answer, examples, answers, has_labels=labelled)


def without_measured(dataset: Dataset, measured: Dataset) -> Dataset:
    """The rows of ``dataset`` whose texts aren't measured, but for capitals and punctuation.

    The documents of a search are both: they are what it is run on.
    """
    if dataset.task.kind == "retrieval":
        return dataset
    alone = dataset.task.kind == "text"
    seen = {
        _plain(*texts)
        for row in measured.rows()
        for texts in (((row.text,), (row.pair or "",)) if alone else ((row.text, row.pair or ""),))
    }
    kept = [
        i for i, row in enumerate(dataset.rows()) if _plain(row.text, row.pair or "") not in seen
    ]
    return dataset if len(kept) == len(dataset) else dataset.select(np.array(kept, dtype=np.int64))


def _plain(*texts: str) -> str:
    return " ".join(re.sub(r"\W+", " ", " ".join(texts).lower()).split())
