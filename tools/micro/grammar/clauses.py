"""Clauses: a subject, a verb in its form, and what the verb asks for."""

from __future__ import annotations

from dataclasses import dataclass

from micro.grammar import inflection
from micro.grammar.lexicon import Verb
from micro.grammar.phrases import prepositional
from micro.grammar.trees import Node, comma

_IRREGULAR = {  # lemma → (first singular, third singular, plural, past singular, past plural)
    "be": ("am", "is", "are", "was", "were"),
    "have": ("have", "has", "have", "had", "had"),
    "do": ("do", "does", "do", "did", "did"),
}
_PARTICIPLES = {"be": ("been", "being"), "have": ("had", "having"), "do": ("done", "doing")}
_CONTRACTED = {"can": "ca", "will": "wo"}


@dataclass(frozen=True, slots=True)
class Mood:
    """How a verb is said: past, negated, with a modal, perfect, progressive."""

    tense: str = "past"
    negated: bool = False
    contracted: bool = False
    modal: str | None = None
    perfect: bool = False
    progressive: bool = False


PAST = Mood()
PRESENT = Mood("present")


@dataclass(frozen=True, slots=True)
class _Forms:
    """What a link of the verb chain can look like."""

    lemma: str
    past: str
    participle: str
    ing: str


def predicate(
    subject: Node | None,
    verb: Verb,
    mood: Mood = PAST,
    *,
    passive: bool = False,
    question: bool = False,
    agreement: Node | None = None,
) -> Node:
    """A verb with its subject and auxiliaries; objects are attached by the caller.

    ``agreement`` is what the verb agrees with where that isn't the subject (in a relative clause,
    or on purpose in an unacceptable sentence).
    """
    chain, main = _chain(
        _Forms(verb.lemma, verb.past, verb.participle, verb.ing),
        "VERB",
        agreement or subject,
        mood,
        passive=passive,
        must_have_auxiliary=question,
    )
    relation = "nsubj:pass" if passive else "nsubj"
    _arrange(main, subject, relation, chain, question=question)
    main.frame = verb.frame
    main.roles = _roles(verb, passive=passive)
    return main


def _roles(verb: Verb, *, passive: bool) -> dict[str, str]:
    """Which relation fills which frame element; the lexicon lists doer, thing, receiver."""
    relations = ("obl:agent", "nsubj:pass") if passive else ("nsubj", "obj", "iobj")
    roles = dict(zip(relations, verb.elements, strict=False))
    if verb.kind in ("clausal", "doubting"):
        roles["ccomp"] = verb.elements[1]
    return roles


def copular(
    subject: Node,
    complement: Node,
    mood: Mood = PAST,
    *,
    question: bool = False,
    agreement: Node | None = None,
) -> Node:
    """The soup was (not) cold: the complement is the head, as in UD."""
    forms = _Forms("be", "was", "been", "being")
    chain, cop = _chain(forms, "AUX", agreement or subject, mood)
    cop.relation = "cop"
    # Negation follows the first finite verb, which is the copula itself if it is alone.
    negation = [node for node in chain if node.lemma == "not"]
    rest = [node for node in chain if node.lemma != "not"]
    ordered = [*rest[:1], *negation, *rest[1:], cop] if rest else [cop, *negation]
    inner, complement.before = complement.before, []
    _arrange(complement, subject, "nsubj", ordered, question=question)
    complement.before += inner
    return complement


def _arrange(
    head: Node, subject: Node | None, relation: str, chain: list[Node], *, question: bool
) -> None:
    fronted = 1 if question else 0
    head.before += chain[:fronted]
    if subject is not None:
        head.left(relation, subject)
    head.before += chain[fronted:]


def _chain(
    forms: _Forms,
    upos: str,
    subject: Node | None,
    mood: Mood,
    *,
    passive: bool = False,
    must_have_auxiliary: bool = False,
) -> tuple[list[Node], Node]:
    """Auxiliaries (with the negation after the first) and the main verb, each in its form."""
    links: list[tuple[_Forms, str, str]] = []  # forms, relation, what it asks of the next link
    if mood.modal:
        links.append((_auxiliary(mood.modal), "aux", "base"))
    if mood.perfect:
        links.append((_auxiliary("have"), "aux", "participle"))
    if mood.progressive:
        links.append((_auxiliary("be"), "aux", "ing"))
    if passive:
        links.append((_auxiliary("be"), "aux:pass", "participle"))
    if not links and forms.lemma != "be" and (mood.negated or must_have_auxiliary):
        links.append((_auxiliary("do"), "aux", "base"))
    nodes: list[Node] = []
    wanted = "finite"
    for link, relation, asks in links:
        node = _verb_node(link, "AUX", wanted, mood, subject)
        node.relation, wanted = relation, asks
        nodes.append(node)
    main = _verb_node(forms, upos, wanted, mood, subject)
    if mood.negated:
        nodes.insert(1, _negation(nodes[0] if nodes else main, contracted=mood.contracted))
    return nodes, main


def _negation(finite: Node, *, contracted: bool) -> Node:
    if not contracted:
        return Node("not", "not", "PART", "Polarity=Neg", "advmod")
    finite.form = _CONTRACTED.get(finite.form, finite.form)
    return Node("n't", "not", "PART", "Polarity=Neg", "advmod", joined=True)


def _auxiliary(lemma: str) -> _Forms:
    participle, ing = _PARTICIPLES.get(lemma, (lemma, lemma))
    past = _IRREGULAR[lemma][3] if lemma in _IRREGULAR else lemma
    return _Forms(lemma, past, participle, ing)


def _verb_node(forms: _Forms, upos: str, wanted: str, mood: Mood, subject: Node | None) -> Node:
    if wanted == "base":
        return Node(forms.lemma, forms.lemma, upos, "VerbForm=Inf")
    if wanted == "participle":
        return Node(forms.participle, forms.lemma, upos, "Tense=Past|VerbForm=Part")
    if wanted == "ing":
        return Node(forms.ing, forms.lemma, upos, "Tense=Pres|VerbForm=Part")
    if mood.modal:
        return Node(forms.lemma, forms.lemma, upos, "VerbForm=Fin")
    return _finite(forms, upos, mood.tense, subject)


def _finite(forms: _Forms, upos: str, tense: str, subject: Node | None) -> Node:
    plural = subject is not None and subject.plural
    person = subject.person if subject is not None else 3
    number = "Plur" if plural else "Sing"
    feats = f"Mood=Ind|Number={number}|Person={person}|Tense=%s|VerbForm=Fin"
    if tense == "past":
        form = forms.past
        if forms.lemma in _IRREGULAR:
            form = _IRREGULAR[forms.lemma][4 if plural else 3]
        return Node(form, forms.lemma, upos, feats % "Past")
    if forms.lemma in _IRREGULAR:
        form = _IRREGULAR[forms.lemma][2 if plural else 0 if person == 1 else 1]
    else:
        base = plural or person == 1
        form = forms.lemma if base else inflection.third_person(forms.lemma)
    return Node(form, forms.lemma, upos, feats % "Pres")


def that_clause(clause: Node, *, complementizer: bool = True) -> Node:
    """(that) the dog barked, as a complement."""
    if complementizer:
        clause.before.insert(0, Node("that", "that", "SCONJ", relation="mark"))
    return clause


def adverbial(clause: Node, conjunction: str, *, first: bool = False) -> Node:
    """A clause to be attached as advcl ("although it rained"); ``first`` puts a comma after it."""
    clause.before.insert(0, Node(conjunction, conjunction, "SCONJ", relation="mark"))
    if first:
        clause.right("punct", comma())
    return clause


def agent_phrase(agent: Node) -> Node:
    """The agent of a passive: by the chef."""
    return prepositional("by", agent)


def coordinate(first: Node, second: Node, conjunction: str = "and", *, pause: bool = True) -> Node:
    """Two clauses, with a comma between them unless they are short."""
    second.before.insert(0, Node(conjunction, conjunction, "CCONJ", relation="cc"))
    if pause:
        second.before.insert(0, Node(",", ",", "PUNCT", relation="punct", joined=True))
    return first.right("conj", second)
