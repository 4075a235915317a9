"""Surgery: apply edits to a model, purely, and prove that they did what they say.

:func:`apply` gives a new model; :func:`certify_weights` is the cheap certificate of every trial,
:func:`certify` the full one, which also runs the models and loads the saved checkpoint again.
:func:`operate` does it all, from a name to a folder, and :func:`verify` checks such a folder again.
"""

from __future__ import annotations

from microtome.surgery.application import apply
from microtome.surgery.certificate import Certificate, Check, certify_weights
from microtome.surgery.operation import Operation, operate
from microtome.surgery.proof import certify
from microtome.surgery.verification import Verification, verify

__all__ = [
    "Certificate",
    "Check",
    "Operation",
    "Verification",
    "apply",
    "certify",
    "certify_weights",
    "operate",
    "verify",
]
