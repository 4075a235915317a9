"""How the classifier of attention patterns was made: labelled maps, made-up maps, training.

``maps`` (labelled maps as files) and ``rules`` (the floor) → ``synthesis`` and ``variations`` (what
is trained on besides the maps as they are) → ``training`` → ``validation`` (held-out heads).
``tools/pattern_classifier.py`` runs it; ``pattern_maps.py`` draws maps, ``pattern_sheets.py`` shows
them to labellers; the labelled maps are in ``tools/pattern_labels``.
"""
