"""Memory: what is read and encoded doesn't stay there."""

from __future__ import annotations

import subprocess
import sys

GROWTH = """
import os, resource, sys
from microtome.tasks import DataSpec, encode, open_data
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
path = Path(sys.argv[1])
os.environ["MICROTOME_CACHE"] = str(path.parent / "cache")
class Words:
    backend_tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
    backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model_max_length = 512
def rows(n):
    with path.open("w") as file:
        file.write("text\\tlabel\\n")
        for i in range(n):
            file.write(f"{i} " + "word " * 200 + f"\\t{i % 2}\\n")
def read():
    data = open_data(DataSpec(path=path))
    assert len(encode(data, Words(), max_length=512)) == len(data)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows(4_500)
first = read()
rows(40_000)
print(path.stat().st_size // 1024, read() - first)
"""


def test_texts_do_not_stay_in_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path / "a.tsv")],
        capture_output=True,
        text=True,
        check=True,
    )
    file_kb, grown = map(int, done.stdout.split())
    if sys.platform == "darwin":
        grown //= 1024  # bytes there
    assert file_kb > 38_000
    assert grown < file_kb / 4
