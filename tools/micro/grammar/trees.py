"""Sentences under construction: dependency trees whose order is the order of the words.

A node keeps its dependents before and after it, so a tree is written out by walking it, and every
constituent is a contiguous span. ``annotate`` turns a finished tree into text with its annotation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from micro.grammar import inflection
from microtome.tasks.annotation.gold import Annotated, Element, Frame
from microtome.tasks.annotation.treebanks import Sentence, Word

# Receivers and places are kept apart while the tree is built; UD writes both as obl.
WRITTEN = {"obl:to": "obl"}


@dataclass(eq=False, slots=True)
class Node:
    """A word with its dependents; ``plural`` and ``person`` are what a verb agrees with."""

    form: str
    lemma: str
    upos: str
    feats: str = "_"
    relation: str = "root"
    plural: bool = False
    person: int = 3
    joined: bool = False  # written without a space before it: n't, 's, a comma
    entity: int | None = None  # nodes with the same number mean the same thing
    frame: str | None = None
    roles: dict[str, str] = field(default_factory=dict)  # relation of a dependent → frame element
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)

    def left(self, relation: str, *nodes: Node) -> Node:
        """Attach ``nodes`` before this word, after those that are already there."""
        for node in nodes:
            node.relation = relation
            self.before.append(node)
        return self

    def right(self, relation: str, *nodes: Node) -> Node:
        """Attach ``nodes`` after this word, after those that are already there."""
        for node in nodes:
            node.relation = relation
            self.after.append(node)
        return self

    def words(self) -> Iterator[Node]:
        """The nodes of this constituent, in order."""
        for node in self.before:
            yield from node.words()
        yield self
        for node in self.after:
            yield from node.words()


def annotate(root: Node, *, mark: str = ".") -> Annotated:
    """Write a tree out: articles, capitals, final punctuation, characters, entities."""
    root.right("punct", comma(mark))
    nodes = list(root.words())
    place = {id(node): index for index, node in enumerate(nodes)}
    parents = {id(child): node for node in nodes for child in (*node.before, *node.after)}
    forms = _forms(nodes)
    entities = _entities(nodes, place)
    words: list[Word] = []
    text = ""
    for index, node in enumerate(nodes):
        text += "" if node.joined or not text else " "
        start, text = len(text), text + forms[index]
        glued = index + 1 < len(nodes) and nodes[index + 1].joined
        misc = [entities[index]] if entities[index] else []
        misc += ["SpaceAfter=No"] if glued else []
        head = place[id(parents[id(node)])] + 1 if id(node) in parents else 0
        words.append(
            Word(
                forms[index],
                node.lemma,
                node.upos,
                feats=node.feats,
                head=head,
                relation=WRITTEN.get(node.relation, node.relation),
                misc="|".join(misc) or "_",
                start=start,
                stop=len(text),
            )
        )
    return Annotated(Sentence(text, tuple(words)), _frames(nodes, place), _pronouns(nodes))


def comma(form: str = ",") -> Node:
    """A punctuation mark, written onto the word before it."""
    return Node(form, form, "PUNCT", joined=True)


def _forms(nodes: list[Node]) -> list[str]:
    forms = [node.form for node in nodes]
    for index, node in enumerate(nodes):
        if node.lemma == "a" and node.upos == "DET":
            forms[index] = inflection.article(forms[index + 1])
    forms[0] = forms[0][0].upper() + forms[0][1:]
    return forms


def _span(node: Node, place: dict[int, int]) -> tuple[int, int]:
    inside = [place[id(word)] for word in node.words()]
    return inside[0], inside[-1] + 1


def _entities(nodes: list[Node], place: dict[int, int]) -> list[str]:
    """The ``Entity=`` value of every word: (e1 … e1) around each mention."""
    opening: list[list[tuple[int, str]]] = [[] for _ in nodes]
    closing: list[list[tuple[int, str]]] = [[] for _ in nodes]
    for node in nodes:
        if node.entity is None:
            continue
        start, stop = _span(node, place)
        name = f"e{node.entity}"
        if stop - start == 1:
            opening[start].append((0, f"({name})"))
        else:
            opening[start].append((start - stop, f"({name}"))
            closing[stop - 1].append((stop - start, f"{name})"))
    marks = [
        "".join(text for _, text in sorted(close) + sorted(open_))
        for open_, close in zip(opening, closing, strict=True)
    ]
    return [f"Entity={mark}" if mark else "" for mark in marks]


def _frames(nodes: list[Node], place: dict[int, int]) -> tuple[Frame, ...]:
    return tuple(
        Frame(
            node.frame,
            place[id(node)],
            tuple(
                Element(node.roles[filler.relation], *_span(filler, place))
                for filler in (*node.before, *node.after)
                if filler.relation in node.roles
            ),
        )
        for node in nodes
        if node.frame
    )


def _pronouns(nodes: list[Node]) -> tuple[tuple[int, int], ...]:
    nouns = {
        node.entity: index
        for index, node in reversed(list(enumerate(nodes)))
        if node.entity is not None and node.upos in ("NOUN", "PROPN")
    }
    return tuple(
        (index, nouns[node.entity])
        for index, node in enumerate(nodes)
        if node.upos == "PRON" and node.entity in nouns and node.entity is not None
    )
