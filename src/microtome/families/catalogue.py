"""Which families there are, and what their configs call things; no torch here.

Reading a config.json, listing families and refusing a foreign one need only this file. What a
family *does* is in its own module, which :func:`microtome.families.adapt` imports for a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtome.errors import UnsupportedFamily
from microtome.families.stack import LayerStack
from microtome.plugins import Plugin, added, working


@dataclass(frozen=True)
class ConfigNames:
    """The keys under which a family's config keeps its sizes."""

    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    width: str = "hidden_size"
    inner: str = "intermediate_size"
    vocabulary: str = "vocab_size"
    positions: str = "max_position_embeddings"


@dataclass(frozen=True)
class FamilyFacts:
    """One family: its name, the ``model_type`` values it answers to, and its module.

    ``groups`` is the config key that counts the sets of weights its layers share, where they do.
    Layers below ``first_copied`` are built differently and stay first and single. Without
    ``has_uniform_heads`` no weights of a head make its attention uniform. transformers knows only
    its eager attention for an ``only_eager`` family. ``layouts`` are config values that tensors'
    first names imply where the config doesn't say them: (first name, key, value).
    """

    name: str
    model_types: tuple[str, ...]
    module: str
    config: ConfigNames = ConfigNames()
    groups: str | None = None
    first_copied: int = 0
    has_uniform_heads: bool = True
    only_eager: bool = False
    layouts: tuple[tuple[str, str, bool], ...] = ()

    def stack(self, n_layers: int, n_groups: int | None) -> LayerStack:
        """The layers of a model of this family; ``n_groups`` counts only where it shares them."""
        return LayerStack(n_layers, n_groups if self.groups else None, self.first_copied)


FAMILIES: tuple[FamilyFacts, ...] = (
    FamilyFacts("bert", ("bert",), "microtome.families.bert"),
    FamilyFacts("roberta", ("roberta", "xlm-roberta", "camembert"), "microtome.families.roberta"),
    FamilyFacts("electra", ("electra",), "microtome.families.electra"),
    FamilyFacts(
        "distilbert",
        ("distilbert",),
        "microtome.families.distilbert",
        ConfigNames(layers="n_layers", heads="n_heads", width="dim", inner="hidden_dim"),
    ),
    FamilyFacts("albert", ("albert",), "microtome.families.albert", groups="num_hidden_groups"),
    # Layer 0 has no attention norm (the embeddings are normed already).
    FamilyFacts("modernbert", ("modernbert",), "microtome.families.modernbert", first_copied=1),
    # A position bias that all layers share is added after q·k.
    FamilyFacts(
        "mpnet", ("mpnet",), "microtome.families.mpnet", has_uniform_heads=False, only_eager=True
    ),
    FamilyFacts(
        "deberta",
        ("deberta-v2",),
        "microtome.families.deberta",
        only_eager=True,
        layouts=(("lm_predictions.", "legacy", False),),
    ),
    FamilyFacts("nomicbert", ("nomic_bert",), "microtome.families.nomic"),
    FamilyFacts("gte", ("gte",), "microtome.families.nomic"),
    FamilyFacts("jina-v3", ("jina_embeddings_v3",), "microtome.families.nomic"),
    FamilyFacts("eurobert", ("eurobert",), "microtome.families.eurobert"),
)


OUR_TYPES = {model_type: facts for facts in FAMILIES for model_type in facts.model_types}


def plugins() -> dict[str, Plugin]:
    """The families that installed packages add, by name."""
    return added("family", [facts.name for facts in FAMILIES])


def family_names() -> tuple[str, ...]:
    """Every family's name: ours, then those of installed packages."""
    return *(facts.name for facts in FAMILIES), *plugins()


def find_family(name: str) -> FamilyFacts:
    """The facts of the family called ``name``."""
    for facts in FAMILIES:
        if facts.name == name:
            return facts
    facts = plugins()[name].load(FamilyFacts)
    if taken := OUR_TYPES.keys() & set(facts.model_types):
        raise plugins()[name].error(f"is for {', '.join(sorted(taken))}, which Microtome has")
    return facts


def facts_of(model_type: str) -> FamilyFacts:
    """The facts of the family that ``model_type`` belongs to; an unknown one is refused by name."""
    if model_type in OUR_TYPES:
        return OUR_TYPES[model_type]
    families, problems = working(family_names(), find_family)
    for facts in families:
        if model_type in facts.model_types:
            return facts
    supported = f"supported: {', '.join(t for facts in families for t in facts.model_types)}"
    raise UnsupportedFamily(
        f"a model of type {model_type!r} was given, and Microtome has no adapter for it",
        "; ".join([supported, *(problem.message for problem in problems)]),
    )
