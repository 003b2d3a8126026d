#!/usr/bin/env python3
"""Writes pillow_pixels.tsv: what Pillow (pip install pillow) makes of the good BMP and PNM files of tests/fuzz/corpus.

A line has the file, its width and height, and the RGBA pixels in hexadecimal digits. Files that Pillow does not
read are left out, and so is the transparency of 32-bit BMP files without a mask of it. Run it after a change of
the corpus and commit what it writes.
"""
import os
import sys

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "..", "fuzz", "corpus")


def rgba(image):
    if image.mode.startswith("I"):  # 16-bit grey: Pillow scales it to 65535
        grey = image.convert("I").tobytes()
        values = [int.from_bytes(grey[i:i + 4], sys.byteorder) for i in range(0, len(grey), 4)]
        return b"".join(bytes([(v * 255 + 32767) // 65535] * 3 + [255]) for v in values)
    return image.convert("RGBA").tobytes()


def main():
    lines = []
    for kind in ("bmp", "pnm"):
        for name in sorted(os.listdir(os.path.join(CORPUS, kind))):
            if not name.startswith("good-"):
                continue
            try:
                with Image.open(os.path.join(CORPUS, kind, name)) as image:
                    lines.append(f"{kind}/{name}\t{image.width}\t{image.height}\t{rgba(image).hex()}\n")
            except Exception as error:
                print(f"left out: {kind}/{name}: {error}")
    with open(os.path.join(HERE, "pillow_pixels.tsv"), "w") as file:
        file.writelines(lines)
    print(f"{len(lines)} files")


main()
