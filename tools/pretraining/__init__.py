"""How the embedded models were made: grown in depth, with a head start from counting.

``tools/nano_grown.py`` runs it, ``tools/nano_lessons.py`` is nano-bert's last leg. The plain form
that users have is ``microtome pretrain``; what is here builds on the same rows, masks, log,
checkpoints and finish.
"""
