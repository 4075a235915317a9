"""The model card of a saved checkpoint, from a template; no torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from microtome.models.front_matter import learning_rate_of, license_of, pipeline_tag_of
from microtome.models.provenance import Provenance

if TYPE_CHECKING:
    from microtome.models.costs import Cost

# A head of its own decides what a model is for, whatever its base was.
_TAGS = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask",
}
_TEMPLATE = """\
---
library_name: {library}
{pipeline_tag}{license}{learning_rate}tags:
- microtome
---
# {title}

{summary}

## Edits
{edits}

## Certificate
{certificate}

## Cost
| parameters | FLOPs per token (length 128) | bytes of weights |
|---|---|---|
| {parameters:,} | {flops:,.0f} | {bytes:,} |

## How to load it
```python
{how_to_load}
```

## Licence
{license_text}

`microtome.json` holds the same facts for programs.
"""

_ANSWERS = {True: "yes", False: "no", None: "not run"}


def model_card(
    *,
    title: str,
    architecture: str,
    provenance: Provenance | None,
    certificate: Mapping[str, object] | None,
    cost: Cost,
    has_pooler: bool = True,
    task: str | None = None,
    loader: str | None = None,
    story: str = "",
) -> str:
    """The text of README.md.

    ``task`` is what the model was fine-tuned on, before its edits or after them. Without
    ``has_pooler`` the card shows how to load the model so that none is drawn at random.
    ``loader`` is the class of sentence-transformers that the folder is for, where it is. ``story``
    says what happened besides the edits.
    """
    license_id = license_of(provenance.path) if provenance else None
    rate = learning_rate_of(provenance.path) if provenance else None
    tag = pipeline_tag_of(provenance.path) if provenance else None
    if loader is None:  # a folder of sentence-transformers is for what its base was for
        tag = next((own for head, own in _TAGS.items() if architecture.endswith(head)), tag)
    return _TEMPLATE.format(
        library="transformers" if loader is None else "sentence-transformers",
        pipeline_tag=f"pipeline_tag: {tag}\n" if tag else "",
        license=f"license: {license_id}\n" if license_id else "",
        learning_rate=f"learning_rate: {rate:g}\n" if rate else "",
        title=_plain(title),
        summary=" ".join(filter(None, (_summary(provenance, architecture, task), story))),
        edits=_edits(provenance.edits if provenance else ()),
        certificate=_certificate(certificate),
        parameters=cost.parameters,
        flops=cost.flops_per_token,
        bytes=cost.bytes,
        how_to_load=_how_to_load(architecture, loader, has_pooler=has_pooler),
        license_text=_license_text(license_id),
    )


def _summary(provenance: Provenance | None, architecture: str, task: str | None) -> str:
    tuned = f" Its weights were fine-tuned on `{_plain(str(task))}`." if task else ""
    if provenance is None:
        return f"A `{architecture}` written by Microtome. Its origin is not recorded.{tuned}"
    base = provenance.base
    return (
        f"A `{architecture}` ({provenance.family}) made by Microtome from `{_plain(base.name)}` "
        f"(content hash `{_plain(base.content_hash)}`), stored as {provenance.dtype}.{tuned}"
    )


def _how_to_load(architecture: str, loader: str | None, *, has_pooler: bool) -> str:
    if loader is not None:
        return (
            f'from sentence_transformers import {loader}\nmodel = {loader}("PATH/TO/THIS/FOLDER")'
        )
    options = "" if has_pooler else ", add_pooling_layer=False"
    return (
        f"from transformers import {architecture}\n"
        f'model = {architecture}.from_pretrained("PATH/TO/THIS/FOLDER"{options})'
    )


def _edits(texts: Sequence[str]) -> str:
    if not texts:
        return "None: the layers are those of the base."
    return "\n".join(f"{i}. `{_plain(text)}`" for i, text in enumerate(texts, start=1))


def _certificate(certificate: Mapping[str, object] | None) -> str:
    if certificate is None:
        return "None was made."
    outcome = "Passed." if certificate.get("passed") is True else "**Not passed.**"
    checks = certificate.get("checks")
    if not isinstance(checks, Sequence) or not checks:
        return outcome
    rows = [
        f"| {_cell(check.get('name'))} | {_ANSWERS.get(check.get('passed'), 'no')} | "
        f"{_cell(check.get('detail'))} |"
        for check in checks
        if isinstance(check, Mapping)
    ]
    return "\n".join([outcome, "", "| check | passed | detail |", "|---|---|---|", *rows])


def _license_text(license_id: str | None) -> str:
    if license_id is None:
        return "The base's card names none; ask its authors."
    return f"`{license_id}`, as the base's card says."


def _plain(text: str) -> str:
    """One line that can't break out of a code span."""
    return " ".join(text.replace("`", "'").split())


def _cell(value: object) -> str:
    """Text of a table cell: one line, no markup of its own."""
    text = _plain("" if value is None else str(value))
    return text.replace("|", "\\|").replace("<", "&lt;")
