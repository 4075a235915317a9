"""The demo: make a small random BERT, operate on it, and show the certificate."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from microtome.cli import run


def make_model(folder: Path) -> None:
    """A random BERT of 12 layers and 4 heads, saved by plain transformers."""
    import torch
    from transformers import BertConfig, BertForMaskedLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=128,
    )
    BertForMaskedLM(config).save_pretrained(folder)


def main() -> int:
    """Run ``microtome operate`` as a user would."""
    with tempfile.TemporaryDirectory() as place:
        base, out = Path(place) / "random-bert-12", Path("demo") / "random-bert-15"
        make_model(base)
        if out.exists():
            print(f"{out} is there from an earlier demo; it is replaced")
            for file in sorted(out.iterdir()):
                file.unlink()
        print(f'microtome operate {base.name} "extend(15)" "disable(3.2)" --out {out}')
        return run(["operate", str(base), "extend(15)", "disable(3.2)", "--out", str(out)])


if __name__ == "__main__":
    sys.exit(main())
