"""Folders of sentence-transformers: an encoder, and what makes embeddings or scores of its states.

:mod:`folder` looks at one without torch, :mod:`embedder_files` reads what comes after the encoder.
"""
