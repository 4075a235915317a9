"""Which words of a micro task are subjects (`from gold_subjects import subject_words`)."""

from __future__ import annotations

from collections import Counter

from microtome.tasks import Dataset
from microtome.tasks.annotation.passages import gold_passages


def subject_words(dataset: Dataset) -> set[str]:
    """Words that are subjects more often than not in the gold annotation, in lower case."""
    counts: dict[str, Counter[bool]] = {}
    for passage in gold_passages(dataset):
        for placed in passage.sentences:
            for word in placed.sentence.words:
                is_subject = word.relation.startswith("nsubj")
                counts.setdefault(word.form.lower(), Counter())[is_subject] += 1
    return {form for form, seen in counts.items() if seen[True] > seen[False]}
