"""A model on the rows that it is measured on: what it answers, and what that is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from microtome.experiments.kit.paired_comparison import Outcome
from microtome.experiments.kit.trial_inputs import opened_model, opened_rows
from microtome.observe.evaluation import check_fit, encode_to_score
from microtome.observe.outcomes import answers_in, evaluation_of, outcomes
from microtome.observe.predicting import predict
from microtome.runs import Context
from microtome.tasks import Dataset, Encoded, Evaluation
from microtome.tasks.scoring.constant import answer_columns


class Measured:
    """A model and rows, encoded once; other models of its kind may answer them, too."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, dataset: Dataset
    ) -> None:
        check_fit(model, dataset)
        self.model, self.tokenizer, self.dataset = model, tokenizer, dataset
        self.encoded: Encoded = encode_to_score(model, tokenizer, dataset)

    @classmethod
    def opened(cls, request: Mapping[str, Any], context: Context) -> Measured:
        """The model and the rows of a trial."""
        return cls(*opened_model(context), opened_rows(request, context))

    def answers(self, model: PreTrainedModel | None = None) -> NDArray[Any]:
        """What a model answers, this one unless given: as much of it as the scores need."""
        asked = model or self.model
        return answers_in(asked, self.dataset, self.encoded, predict(asked, self.encoded))

    def outcome(self, answers: NDArray[Any], metric: str) -> Outcome:
        """The answers by one metric, ready to be paired with others."""
        return outcomes(self.model, self.dataset, self.encoded, answers)[metric]

    def evaluation(self, answers: NDArray[Any]) -> Evaluation:
        """The answers' scores with intervals."""
        return evaluation_of(self.model, self.dataset, self.encoded, answers)

    def answer_columns(self, answers: NDArray[Any], metric: str) -> dict[str, Any]:
        """What one constant answer scores, and whether these are one."""
        return answer_columns(self.dataset, self.evaluation(answers), metric, self.encoded)
