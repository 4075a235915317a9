"""The models that ship: whole, small, described truly, and better than chance at what they do."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import microtome
from microtome.edits import parse
from microtome.models import load, load_tokenizer, resolve
from microtome.models.checkpoint import look_at
from microtome.models.front_matter import learning_rate_of, license_of
from microtome.observe import decode, vocabulary_of
from microtome.surgery import operate
from microtome.tasks import DataSpec, encode, find_task, open_data
from microtome.training.recipe import recipe_for

NAMES = ("nano-bert", "nano-albert")
SHAPES = {"nano-bert": ("bert", 12, 128), "nano-albert": ("albert", 12, 192)}


@pytest.mark.parametrize("name", NAMES)
def test_the_folder_is_what_its_record_says(name):
    folder = resolve(name).path
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    weights = (folder / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == record["weights_sha256"]
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 10e6
    with safe_open(folder / "model.safetensors", "np") as file:
        assert {file.get_tensor(key).dtype for key in file.keys()} == {np.dtype("float16")}  # noqa: SIM118
    family, layers, width = SHAPES[name]
    found = look_at(folder)
    assert found.config["model_type"] == family
    assert (found.config["num_hidden_layers"], found.config["hidden_size"]) == (layers, width)


def test_all_that_ships_stays_below_25_mb():
    package = Path(microtome.__file__).parent
    files = [file for file in package.rglob("*") if "__pycache__" not in file.parts]
    assert sum(file.stat().st_size for file in files if file.is_file()) < 25e6


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_of_the_record(name):
    folder = resolve(name).path
    told = (folder / "README.md").read_text(encoding="utf-8")
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    assert record["weights_sha256"] in told
    assert f"**{record['result']['heldout']['accuracy']:.1%}** behind [MASK]" in told
    for depth in record["result"]["depths"]:
        line = f"| {depth['depth']} | {depth['accuracy']:.3f} | {depth['control']:.3f} |"
        assert line in told


@pytest.mark.real
@pytest.mark.parametrize(("name", "bar"), [("nano-bert", 0.22), ("nano-albert", 0.18)])
def test_masked_words_of_text_never_trained_on_are_guessed(shared_data, name, bar):
    """By plain transformers, on 200 rows of the end of the corpus' last file."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = resolve(name).path
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).float().eval()
    text = lzma.decompress(shared_data("data/text/wiki_01.txt.xz").read_bytes()).decode()
    stream = tokenizer.backend_tokenizer.encode(text[-300_000:], add_special_tokens=False).ids
    inner = torch.tensor(stream[: 200 * 126]).reshape(200, 126)
    ends = torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id]).expand(200, 2)
    rows = torch.cat([ends[:, :1], inner, ends[:, 1:]], dim=1)
    hidden = torch.rand(rows.shape, generator=torch.Generator().manual_seed(0)) < 0.15
    hidden[:, [0, -1]] = False
    shown = rows.masked_fill(hidden, tokenizer.mask_token_id)
    with torch.no_grad():
        guesses = torch.cat([model(input_ids=part).logits.argmax(-1) for part in shown.split(20)])
    right = (guesses == rows)[hidden].float().mean()
    unigram = torch.bincount(rows[hidden]).max() / hidden.sum()  # the best single guess there is
    assert right >= bar
    assert right > 3 * unigram


@pytest.mark.parametrize("name", NAMES)
def test_the_card_names_licence_and_learning_rate_and_the_recipe_takes_it(name):
    folder = resolve(name).path
    assert license_of(folder) == "apache-2.0"
    rate = learning_rate_of(folder)
    assert rate is not None
    assert rate > 1e-4  # 2e-5 suits models six times as wide
    assert recipe_for(find_task("micro-sentiment"), folder).learning_rate == rate


@pytest.mark.parametrize("name", NAMES)
def test_the_last_state_reads_back_and_random_blocks_do_not(name):
    from microtome.experiments.kit.controlled_decoding import random_blocks

    model, tokenizer = load(name), load_tokenizer(name)
    rows = open_data(DataSpec("micro-sentiment", None, "dev")).limit(50)
    encoded = encode(rows, tokenizer, max_length=64, segments=True)
    vocabulary = vocabulary_of(tokenizer)
    found = decode(model, encoded, vocabulary)
    control = decode(random_blocks(model), encoded, vocabulary)
    assert found.readout == "mlm"
    assert found.accuracy()[-1] > 0.5
    assert found.accuracy()[-1] > control.accuracy()[-1] + 0.2


def test_a_masked_word_is_guessed_from_its_context():
    import torch

    model, tokenizer = load("nano-bert"), load_tokenizer("nano-bert")
    text = f"he was born in the united {tokenizer.mask_token} of america ."
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch).logits[0]
    place = int((batch["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0])
    best = tokenizer.convert_ids_to_tokens(logits[place].topk(5).indices.tolist())
    assert "states" in best


@pytest.mark.parametrize(
    ("name", "edit", "layers"), [("nano-bert", "extend(15)", 15), ("nano-albert", "extend(24)", 24)]
)
def test_an_embedded_model_can_be_operated_on(tmp_path, name, edit, layers):
    from transformers import AutoModelForMaskedLM

    done = operate(name, parse(edit), tmp_path / "out")
    assert done.certificate.passed
    assert AutoModelForMaskedLM.from_pretrained(done.out).config.num_hidden_layers == layers
