"""Annotated text: treebanks, frames, taggers, and which pieces a word has."""
