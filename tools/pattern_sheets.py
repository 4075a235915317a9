"""Contact sheets of a folder of maps, 20 to a picture, to be looked at and labelled by hand.

    python tools/pattern_sheets.py OUT [--maps FOLDER] [--seed 1] [--texts]

A sheet says nothing about where a map comes from; ``key.csv`` in the same folder has the number of
the map at each place. Dark is much attention (the square root of the weight, from 0 to the map's
largest). C, S and · mark [CLS], [SEP] and punctuation; blue ticks are at the border between two
texts. Another seed is another order. ``--labels FILE`` turns answers into a table in the order of
the maps: a csv file of id (sheet-place, as above each map: 03-17) and label, or a text file of one
line of 20 letters per sheet (v d b h, and m for both).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from microtome.observe.patterns import PATTERNS
from patterns.maps import LABELS, Map, load_maps

PER_SHEET, COLUMNS = 20, 5
SIDE, EDGE, GAP = 274, 19, 3  # pixels of a map, around it, and between it and its frame
FONT, SMALL = ImageFont.load_default(12), ImageFont.load_default(11)
RED, BLUE, PALE = "#b03000", "#1060c0", "#c8d8e8"
MARKS = {1: "C", 2: "S", 3: "·"}
LETTERS = dict(zip("vdmbh", PATTERNS, strict=True))


def draw(one: Map, title: str) -> Image.Image:
    """One map with its number above and its special tokens at the left and below.

    The frame is pale and keeps off the map, the border has ticks outside it: in a map of 200 tokens
    a column is 1.4 pixels wide, and a dark line next to the first or last would look like a stripe.
    """
    image = np.sqrt(one.weights)
    grey = (255 * (1 - image / image.max())).astype(np.uint8)
    cell = Image.new("RGB", (SIDE + 2 * EDGE, SIDE + 2 * EDGE), "white")
    cell.paste(scaled(grey).convert("RGB"), (EDGE, EDGE))
    pen = ImageDraw.Draw(cell)
    end = EDGE + SIDE - 1
    pen.rectangle((EDGE - GAP, EDGE - GAP, end + GAP, end + GAP), outline=PALE)
    pen.text((EDGE, 0), f"{title}    L={one.length}", fill="black", font=FONT)
    step = SIDE / one.length
    for i in np.flatnonzero(one.kinds):
        middle = EDGE + (i + 0.5) * step
        mark = MARKS[int(one.kinds[i])]
        pen.text((EDGE - 9, middle), mark, fill=RED, font=SMALL, anchor="mm")
        pen.text((middle, end + 10), mark, fill=RED, font=SMALL, anchor="mm")
    if one.border:
        line = EDGE + one.border * step
        for near, far in ((EDGE - EDGE // 2, EDGE - GAP), (end + GAP, end + EDGE // 2)):
            pen.line((line, near, line, far), fill=BLUE, width=2)
            pen.line((near, line, far, line), fill=BLUE, width=2)
    return cell


def scaled(grey: np.ndarray) -> Image.Image:
    """SIDE × SIDE pixels, each the mean of what it covers: all columns are equally dark in sum."""
    times = -(-SIDE // len(grey)) * 4
    large = np.kron(grey, np.ones((times, times), np.uint8))
    return Image.fromarray(large).resize((SIDE, SIDE), Image.Resampling.BOX)


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
                sheet.paste(draw(maps[i], f"{number:02d}-{place + 1:02d}{told}"), corner)
                writer.writerow([number, place + 1, maps[i].about["map"]])
            sheet.save(out / f"sheet-{number:02d}.png")


def labels(maps: list[Map], order: np.ndarray, path: Path, out: Path) -> None:
    """Answers in the sheets' order → a table in the maps' order."""
    answers = answers_by_id if path.suffix == ".csv" else answers_in_order
    given = {
        maps[i].about["map"]: label
        for i, label in zip(order, answers(path, len(order)), strict=True)
    }
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["map", "label"])
        writer.writerows(sorted(given.items()))


def answers_in_order(path: Path, n: int) -> list[str]:
    lines = [line.split("#")[0].replace(" ", "").strip() for line in path.read_text().splitlines()]
    letters = "".join(line for line in lines if line)
    if len(letters) != n:
        raise SystemExit(f"expected {n} letters, one for each map, got {len(letters)}")
    return [LETTERS[letter] for letter in letters]


def answers_by_id(path: Path, n: int) -> list[str]:
    with path.open(newline="") as stream:
        rows = [(row["id"].strip(), row["label"].strip()) for row in csv.DictReader(stream)]
    ids = [f"{i // PER_SHEET + 1:02d}-{i % PER_SHEET + 1:02d}" for i in range(n)]
    given = dict(rows)
    if len(rows) != len(given) or set(given) != set(ids):
        wrong = sorted(set(given) ^ set(ids)) or [
            i for i in ids if [r[0] for r in rows].count(i) > 1
        ]
        raise SystemExit(f"{path}: expected each id once; missing, unknown or twice: {wrong}")
    if unknown := sorted(set(given.values()) - set(PATTERNS)):
        raise SystemExit(f"{path}: expected the labels {', '.join(PATTERNS)}; got {unknown}")
    return [given[i] for i in ids]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--maps", type=Path, default=LABELS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", action="store_true", help="the text above each map")
    parser.add_argument("--only", type=Path, help="a table with a column map: these maps alone")
    parser.add_argument("--labels", type=Path, help="answers; OUT is the table to write then")
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
