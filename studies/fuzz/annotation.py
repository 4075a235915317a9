"""Annotated text and edits: CoNLL-U, FrameNet, the published list, the grammar."""

from __future__ import annotations

from pathlib import Path
from random import Random

from loop import Case, Target, Wrong
from tables import word

from microtome.edits import catalogue, parse
from microtome.tasks.annotation.frames import read_framenet, read_published, select
from microtome.tasks.annotation.treebanks import (
    mentions,
    parse_conllu,
    read_conllu,
    write_conllu,
)


def conllu_case(rng: Random) -> Case:
    blocks, expected = [], []
    for _ in range(rng.randint(1, 4)):
        n_words = rng.randint(1, 6)
        forms = [word(rng) for _ in range(n_words)]
        lines = [f"# sent_id = s{len(blocks)}"]
        for place, form in enumerate(forms, start=1):
            if rng.random() < 0.2 and place < n_words:
                lines.append("\t".join([f"{place}-{place + 1}", form, *["_"] * 8]))
            head = rng.choice([h for h in range(n_words + 1) if h != place])
            misc = rng.choice(
                ["_", "SpaceAfter=No", "Entity=(e1)", "Entity=(e1", "Entity=(e1-person)"]
            )
            lines.append(
                "\t".join([str(place), form, "_", "X", "_", "_", str(head), "dep", "_", misc])
            )
        lines = [line for i, line in enumerate(lines) if not _overlaps(lines, i)]
        blocks.append("\n".join(lines))
        expected.append(tuple(forms))
    content = "\n\n".join(blocks) + rng.choice(["", "\n", "\n\n"])
    return Case({"text.conllu": content.encode()}, expected)


def _overlaps(lines: list[str], at: int) -> bool:
    """Whether the line is a range that begins within the range before it."""
    own = lines[at].split("\t")[0]
    before = [line.split("\t")[0] for line in lines[max(0, at - 2) : at]]
    return "-" in own and "\t" in lines[at] and any("-" in one for one in before)


def read_treebank(place: Path) -> list[tuple[str, ...]]:
    sentences = read_conllu(place / "text.conllu")
    again = list(parse_conllu(write_conllu(sentences)))
    if [s.words for s in again] != [s.words for s in sentences]:
        raise Wrong("writing and reading again gives other words")
    if [s.ranges for s in again] != [s.ranges for s in sentences]:
        raise Wrong("writing and reading again gives other written tokens")
    for sentence in sentences:
        mentions(sentence)
    return [tuple(one.form for one in sentence.words) for sentence in sentences]


PUBLISHED = "She sold the old car to her brother  sold ['She', 'her brother']\n"


def published_case(rng: Random) -> Case:
    return Case({"frames.txt": (PUBLISHED * rng.randint(1, 4)).encode()})


def read_list(place: Path) -> int:
    return len(select(read_published(place / "frames.txt")).kept)


XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
SPACE = 'xmlns="http://framenet.icsi.berkeley.edu"'
SENTENCE = "She sold the old car to her brother"
FRAMENET = {
    "frRelation.xml": f'{XML}<frameRelations {SPACE}></frameRelations>',
    "fulltextIndex.xml": f'{XML}<fulltextIndex {SPACE}></fulltextIndex>',
    "semTypes.xml": f'{XML}<semTypes {SPACE}></semTypes>',
    "frameIndex.xml": (
        f'{XML}<frameIndex {SPACE}><frame mDate="x" name="Selling" ID="7"/></frameIndex>'
    ),
    "luIndex.xml": (
        f'{XML}<luIndex {SPACE}><lu hasAnnotation="true" frameID="7" frameName="Selling" '
        'status="Finished_Initial" name="sell.v" ID="9"/></luIndex>'
    ),
    "frame/Selling.xml": (
        f'{XML}<frame cBy="x" cDate="x" name="Selling" ID="7" {SPACE}>'
        "<definition>&lt;def-root&gt;To sell.&lt;/def-root&gt;</definition>"
        '<FE bgColor="0" fgColor="0" coreType="Core" cBy="x" cDate="x" abbrev="Sel" name="Seller" '
        'ID="11"><definition>&lt;def-root&gt;Who.&lt;/def-root&gt;</definition></FE>'
        '<FE bgColor="0" fgColor="0" coreType="Core" cBy="x" cDate="x" abbrev="Buy" name="Buyer" '
        'ID="12"><definition>&lt;def-root&gt;To whom.&lt;/def-root&gt;</definition></FE>'
        '<lexUnit status="Finished_Initial" POS="V" name="sell.v" ID="9" lemmaID="1" cBy="x" '
        'cDate="x"><definition>d</definition><sentenceCount annotated="1" total="1"/>'
        '<lexeme order="1" headword="false" breakBefore="false" POS="V" name="sell"/>'
        "</lexUnit></frame>"
    ),
    "lu/lu9.xml": (
        f'{XML}<lexUnit status="Finished_Initial" POS="V" name="sell.v" ID="9" frame="Selling" '
        f'frameID="7" totalAnnotated="1" {SPACE}><header><frame><FE type="Core" abbrev="Sel" '
        'name="Seller" fgColor="0" bgColor="0"/></frame></header><definition>d</definition>'
        '<lexeme POS="V" name="sell"/><subCorpus name="V">'
        '<sentence sentNo="0" aPos="1" ID="100">'
        f"<text>{SENTENCE}</text>"
        '<annotationSet cDate="x" status="UNANN" ID="1"><layer rank="1" name="PENN">'
        '<label end="2" start="0" name="PRP"/></layer></annotationSet>'
        '<annotationSet cDate="x" status="MANUAL" ID="2">'
        '<layer rank="1" name="Target"><label end="7" start="4" name="Target"/></layer>'
        '<layer rank="1" name="FE"><label end="2" start="0" name="Seller"/>'
        '<label end="34" start="24" name="Buyer"/></layer>'
        '<layer rank="1" name="GF"><label end="2" start="0" name="Ext"/></layer>'
        '<layer rank="1" name="PT"><label end="2" start="0" name="NP"/></layer>'
        "</annotationSet></sentence></subCorpus></lexUnit>"
    ),
}  # fmt: skip


def framenet_case(rng: Random) -> Case:
    return Case({name: content.encode() for name, content in FRAMENET.items()}, [SENTENCE])


def read_frames(place: Path) -> list[str]:
    return [exemplar.sentence.text for exemplar in read_framenet(place)]


PARTS = ["(", ")", ",", "=", "|", " ", "0", "3", "0-2", "3.7", "*.1", "3.*", "top=1", "seed=1", '"',
         "how=zero", "std=0.5", "times=2",
         "first=3", "a/b.txt", "sha256=", "0" * 16, "9" * 5000]  # fmt: skip


def edits_case(rng: Random) -> Case:
    examples = [example for form in catalogue() for example in form.examples]
    made = " | ".join(rng.choice(examples) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.3:
        names = [form.name for form in catalogue()]
        parts = [rng.choice([*PARTS, *names]) for _ in range(rng.randint(1, 12))]
        return Case({"edits.txt": "".join(parts).encode()})
    return Case({"edits.txt": made.encode()}, parse(made).text)


def read_edits(place: Path) -> str:
    text = (place / "edits.txt").read_bytes().decode("utf-8", "surrogateescape")
    edits = parse(text)
    if parse(edits.text) != edits:
        raise Wrong("printing and reading again gives other edits")
    return edits.text


TARGETS = [
    Target("conllu", conllu_case, read_treebank),
    Target("framenet", framenet_case, read_frames),
    Target("published", published_case, read_list),
    Target("edits", edits_case, read_edits),
]
