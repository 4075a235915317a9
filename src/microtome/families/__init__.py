"""The adapter seam: the only place that knows a Hugging Face module path.

:func:`adapt` binds a model to its family. One file per family; the contract is :class:`Family`.
Importing this package loads no torch; :func:`adapt` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from microtome.families.catalogue import (
    FAMILIES,
    FamilyFacts,
    facts_of,
    family_names,
    find_family,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.families.seam import Family

__all__ = ["FAMILIES", "FamilyFacts", "adapt", "facts_of", "family_names", "find_family"]


def adapt(model: PreTrainedModel) -> Family:
    """The adapter of ``model``'s family, bound to it."""
    module = importlib.import_module(facts_of(model.config.model_type).module)
    family: Family = module.ADAPTER(model)
    return family
