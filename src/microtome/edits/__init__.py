"""Edits: changes to a model, as values that print, parse, hash and join with ``|``. No torch here.

edit.py       what every edit is, and sequences of edits
depth.py      edits that are an order of layers
weights.py    edits that change weights
vocabulary.py the edit of embeddings and tokenizer together
arguments.py  what is checked without a model
catalogue.py  the table of edits
grammar.py    text → edits
"""

from __future__ import annotations

from microtome.edits.catalogue import EditForm, catalogue
from microtome.edits.depth import DepthEdit, Duplicate, Extend, Keep, Order, Remove, Repeat
from microtome.edits.edit import Edit, Edits
from microtome.edits.grammar import parse
from microtome.edits.vocabulary import Vocabulary
from microtome.edits.weights import Disable, Randomize, Reinit, Unshare

__all__ = [
    "DepthEdit",
    "Disable",
    "Duplicate",
    "Edit",
    "EditForm",
    "Edits",
    "Extend",
    "Keep",
    "Order",
    "Randomize",
    "Reinit",
    "Remove",
    "Repeat",
    "Unshare",
    "Vocabulary",
    "catalogue",
    "parse",
]
