"""What depth edits a model allows, known before any of its weights is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from microtome.errors import EditError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from microtome.families.anatomy import DepthRules

MOST_SHARED = 50  # the papers' last depth for models that share their layers


@dataclass(frozen=True)
class LayerRules:
    """How many layers a model has, and how they may be copied or removed."""

    n_layers: int
    rules: DepthRules

    @property
    def shared(self) -> bool:
        """One set of weights is applied at every depth: only the count can change."""
        return self.rules.shared

    @property
    def deepest(self) -> int:
        """The papers' last depth: twice the layers, or 50 applications of a shared one."""
        if self.shared:
            return max(MOST_SHARED, self.n_layers)
        return 2 * self.n_layers - self.rules.first_copied

    def check(self, edit: str) -> int:
        """The number of layers after ``edit``; one that the model can't take is refused."""
        from microtome.edits import parse
        from microtome.edits.depth import DepthEdit
        from microtome.surgery.application import new_order

        n_layers = self.n_layers
        for one in parse(edit):
            if not isinstance(one, DepthEdit):
                raise EditError(f"{one.text} is no depth edit")
            n_layers = len(new_order(one, n_layers, self.rules))
        return n_layers


def layer_rules(folder: Path) -> LayerRules:
    """The rules of the checkpoint in ``folder``."""
    from microtome.families import adapt

    family = adapt(outline(folder))
    return LayerRules(family.shape.n_layers, family.depth_rules)


def outline(folder: Path) -> PreTrainedModel:
    """The model without numbers: on the meta device a tensor is a shape and takes no memory."""
    import torch
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        made: PreTrainedModel = AutoModel.from_config(config, trust_remote_code=False)
    return made
