"""Contact sheets of a folder of maps, 20 to a picture, to be looked at and labelled by hand.

    python benchmarks/pattern_sheets.py OUT [--maps FOLDER] [--seed 1] [--texts]

A sheet tells nothing about where a map comes from: ``key.csv`` beside the pictures does. Dark is
much attention (the square root of the weight, from 0 to the map's largest). C, S and · mark [CLS],
[SEP] and punctuation; the line is the border between two texts. Another seed is another order.
``--labels FILE`` (one line of 20 letters per sheet: v d b h, and m for both) gives the labels
in the order of the maps.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import microtome
from microtome.observe.patterns.maps import PATTERNS, Map, load_maps

PER_SHEET, COLUMNS = 20, 5
SIDE, EDGE = 204, 18  # pixels of a map, and around it
FONT, SMALL = ImageFont.load_default(12), ImageFont.load_default(11)
RED, BLUE = "#b03000", "#1060c0"
MARKS = {1: "C", 2: "S", 3: "·"}
LETTERS = dict(zip("vdmbh", PATTERNS, strict=True))
SHIPPED = Path(microtome.__file__).parent / "embedded" / "patterns"


def draw(one: Map, title: str) -> Image.Image:
    """One map with its number above and its special tokens at the left and below."""
    image = np.sqrt(one.weights)
    step = SIDE // one.length  # whole pixels: all places of a map are alike
    grey = (255 * (1 - image / image.max())).astype(np.uint8)
    cell = Image.new("RGB", (SIDE + 2 * EDGE, SIDE + 2 * EDGE), "white")
    picture = Image.fromarray(np.kron(grey, np.ones((step, step), np.uint8))).convert("RGB")
    side = step * one.length
    cell.paste(picture, (EDGE, EDGE))
    pen = ImageDraw.Draw(cell)
    pen.rectangle((EDGE - 1, EDGE - 1, EDGE + side, EDGE + side), outline="black")
    pen.text((EDGE, 2), f"{title}    L={one.length}", fill="black", font=FONT)
    for i in np.flatnonzero(one.kinds):
        middle = EDGE + i * step + step / 2
        mark = MARKS[int(one.kinds[i])]
        pen.text((EDGE - 6, middle), mark, fill=RED, font=SMALL, anchor="mm")
        pen.text((middle, EDGE + side + 7), mark, fill=RED, font=SMALL, anchor="mm")
    if one.border:
        line = EDGE + one.border * step
        pen.line((line, EDGE, line, EDGE + side), fill=BLUE)
        pen.line((EDGE, line, EDGE + side, line), fill=BLUE)
    return cell


def sheets(maps: list[Map], order: np.ndarray, out: Path, *, with_texts: bool = False) -> None:
    out.mkdir(parents=True, exist_ok=True)
    size = SIDE + 2 * EDGE
    with (out / "key.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["sheet", "place", "map"])
        for start in range(0, len(order), PER_SHEET):
            number = start // PER_SHEET + 1
            sheet = Image.new("RGB", (COLUMNS * size, PER_SHEET // COLUMNS * size), "white")
            for place, i in enumerate(order[start : start + PER_SHEET]):
                told = f"   {maps[i].about['text'][:45]}" if with_texts else ""
                corner = (place % COLUMNS * size, place // COLUMNS * size)
                sheet.paste(draw(maps[i], f"{place + 1}{told}"), corner)
                writer.writerow([number, place + 1, maps[i].about["map"]])
            sheet.save(out / f"sheet-{number:02d}.png")


def labels(maps: list[Map], order: np.ndarray, path: Path, out: Path) -> None:
    """Letters in the sheets' order → a table in the maps' order."""
    lines = [line.split("#")[0].replace(" ", "").strip() for line in path.read_text().splitlines()]
    letters = "".join(line for line in lines if line)
    if len(letters) != len(order):
        raise SystemExit(f"{len(letters)} letters for {len(order)} maps")
    given = {
        maps[i].about["map"]: LETTERS[letter] for i, letter in zip(order, letters, strict=True)
    }
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["map", "label"])
        writer.writerows(sorted(given.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--maps", type=Path, default=SHIPPED)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", action="store_true", help="the text above each map")
    parser.add_argument("--only", type=Path, help="a table with a column map: these maps alone")
    parser.add_argument("--labels", type=Path, help="letters; OUT is the table to write then")
    given = parser.parse_args()
    maps = load_maps(given.maps)
    if given.only:
        with given.only.open(newline="") as stream:
            wanted = {row["map"] for row in csv.DictReader(stream)}
        maps = [one for one in maps if one.about["map"] in wanted]
    order = np.random.default_rng(given.seed).permutation(len(maps))
    if given.labels:
        labels(maps, order, given.labels, given.out)
    else:
        sheets(maps, order, given.out, with_texts=given.texts)


if __name__ == "__main__":
    main()
