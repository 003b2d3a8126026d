#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus: small inputs good-* and bad-* of every target.

Only Python's standard library. Run it after a change and commit what it writes. Inputs that fuzzing found
are kept under other names, beside these.
"""
import base64
import gzip
import json
import os
import struct
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def write(target, name, data):
    data = data.encode() if isinstance(data, str) else data
    folder = os.path.join(CORPUS, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


# --- PNG ---

def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(width, height, depth, colour, interlace=0, extra=b"", raw=None, trailer=b""):
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = [(0, 0, 1, 1)] if not interlace else [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4),
                                                    (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    lines = b""
    number = 0
    for x0, y0, dx, dy in passes:
        columns, rows = -(-(width - x0) // dx), -(-(height - y0) // dy)
        for row in range(rows if columns > 0 else 0):
            length = (columns * samples * depth + 7) // 8
            body = bytes((row * 7 + i * 13) & (255 if colour != 3 else 0x11) for i in range(length))
            lines += bytes([number % 5]) + body
            number += 1
    data = zlib.compress(lines if raw is None else raw, 9)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    half = len(data) // 2
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", data[:half]) +
            chunk(b"IDAT", data[half:]) + chunk(b"IEND", b"") + trailer)


def png_seeds():
    palette = chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", b"\x00\x80")
    files = {
        "grey1": png(9, 3, 1, 0), "grey2": png(5, 3, 2, 0), "grey4": png(5, 3, 4, 0), "grey8": png(4, 4, 8, 0),
        "grey16": png(3, 3, 16, 0), "rgb8": png(5, 6, 8, 2), "rgb16": png(3, 2, 16, 2),
        "palette4": png(5, 4, 4, 3, extra=palette), "palette1": png(9, 2, 1, 3, extra=palette),
        "greyalpha": png(4, 3, 8, 4), "greyalpha16": png(4, 3, 16, 4), "rgba": png(4, 5, 8, 6),
        "rgba16": png(3, 3, 16, 6), "passes": png(9, 9, 8, 2, 1), "passes1": png(11, 5, 1, 0, 1),
        "exif": png(3, 2, 8, 0, extra=chunk(b"eXIf", exif(6))),
        "key": png(3, 2, 8, 2, extra=chunk(b"tRNS", bytes(6))), "key-grey": png(3, 2, 8, 0, extra=chunk(b"tRNS", bytes(2))),
        "text": png(2, 2, 8, 0, extra=chunk(b"tEXt", b"a\0b")), "key-grey16": png(3, 2, 16, 0, extra=chunk(b"tRNS", bytes(2))),
    }
    good = files["rgb8"]
    bad = {
        "chunk": good[:33] + b"\0\1" + good[35:], "colour": png(4, 2, 8, 3, extra=chunk(b"PLTE", bytes(6))),
        "data-cut": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(bytes(range(52)))[:20]) + chunk(b"IEND", b""),
        "cut": good[:-5], "after": good + b"x", "crc": good[:30] + b"\xff" + good[31:], "signature": b"\x89PNG\r\n\x1a\r" + good[8:],
        "large": png(100000, 1, 8, 0), "zero": png(0, 1, 8, 0, raw=b"\0"), "short": png(4, 4, 8, 2, raw=bytes(13)),
        "long": png(2, 2, 8, 0, raw=bytes(99)), "filter": png(2, 2, 8, 0, raw=b"\x09\0\0" * 2),
        "depth": png(2, 2, 3, 0, raw=bytes(9)), "no-palette": png(4, 2, 4, 3), "no-data": b"\x89PNG\r\n\x1a\n" +
        chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) + chunk(b"IEND", b""),
        "interlace": png(2, 2, 8, 0).replace(b"\x08\x00\x00\x00\x00", b"\x08\x00\x00\x00\x02"),
        "16-bit-cut": png(3, 2, 16, 2, raw=bytes(9)), "method": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 1, 0, 0)) + chunk(b"IEND", b""),
        "two-headers": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) * 2 +
        chunk(b"IDAT", zlib.compress(bytes(6))) + chunk(b"IEND", b""),
        "first-chunk": b"\x89PNG\r\n\x1a\n" + chunk(b"CgBI", bytes(4)) + chunk(b"IEND", b""),
        "zlib": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0)) +
        chunk(b"IDAT", b"no zlib") + chunk(b"IEND", b""),
    }
    for name, data in files.items():
        write("png", f"good-{name}.png", data)
    for name, data in bad.items():
        write("png", f"bad-{name}.png", data)
    return files


def exif(orientation, little=True):
    order = "<" if little else ">"
    return ((b"II*\0" if little else b"MM\0*") + struct.pack(order + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0))


# --- BMP, PNM, TGA ---

def bmp(width, height, bits, header=40, compression=0, palette=b"", masks=b"", rows=None):
    row = (width * bits + 31) // 32 * 4
    pixels = bytes((i * 5) & 255 for i in range(row * abs(height))) if rows is None else rows
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    elif header == 16:
        info = struct.pack("<IiiHH", 16, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(pixels), 0, 0,
                           len(palette) // 4, 0)
        info = struct.pack("<I", header) + info[4:] + (masks + bytes(124))[:header - 40]
    after = b"" if header > 40 else masks
    at = 14 + len(info) + len(after) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + info + after + palette + pixels


# Five columns and three rows: runs, colours one by one, and the ends of lines.
RUNS8 = bytes([5, 7, 0, 0, 0, 3, 1, 2, 3, 0, 2, 4, 0, 0, 1, 5, 4, 6, 0, 1])
RUNS4 = bytes([5, 0x7A, 0, 0, 0, 5, 0x12, 0x34, 0x50, 0, 0, 0, 2, 0x56, 3, 0x78, 0, 1])


def bmp_seeds():
    palette = bytes(range(64))
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    good = {
        "24": bmp(3, 2, 24), "32": bmp(3, 2, 32), "top-down": bmp(3, -2, 24), "16": bmp(3, 2, 16),
        "565": bmp(3, 2, 16, compression=3, masks=masks), "old": bmp(3, 2, 24, header=12),
        "8": bmp(5, 2, 8, palette=bytes(256)), "4": bmp(5, 2, 4, palette=palette), "1": bmp(9, 2, 1, palette=palette[:8]),
        "v5": bmp(3, 2, 32, header=124, compression=3, masks=struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
        "v3": bmp(3, 2, 32, header=56, compression=3, masks=struct.pack("<IIII", 0x3F0, 0xF, 0xC00, 0)),
        "old8": bmp(3, 2, 8, header=12, palette=bytes(range(180))), "2": bmp(6, 2, 2, palette=palette[:16]),
        "rle8": bmp(4, 2, 8, compression=1, palette=palette, rows=bytes((4, 7, 0, 0, 0, 3, 1, 2, 3, 9, 0, 2, 0, 0, 1, 5, 0, 1))),
        "rle4": bmp(4, 2, 4, compression=2, palette=palette, rows=bytes((3, 0x12, 0, 0, 0, 4, 0x45, 0x67, 0, 1))),
        "old4": bmp(5, 3, 4, header=12, palette=bytes(range(48))), "old1": bmp(9, 3, 1, header=12, palette=bytes(range(6))),
        "top-down8": bmp(5, -3, 8, palette=bytes(range(256)) * 4), "top-down1": bmp(9, -3, 1, palette=palette[:8]),
        "os2": bmp(5, 2, 4, header=64, palette=palette), "os2-short": bmp(5, 2, 4, header=16, palette=palette),
        "os2-short24": bmp(3, 2, 24, header=16), "v2": bmp(3, 2, 16, header=52, compression=3, masks=masks), "v4": bmp(3, 2, 24, header=108),
        "alpha-masks": bmp(3, 2, 32, compression=6, masks=struct.pack("<IIII", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
        "24-masks": bmp(3, 2, 24, compression=3, masks=struct.pack("<III", 0xFF0000, 0xFF00, 0xFF)),
        "24-masks-swapped": bmp(3, 2, 24, compression=3, masks=struct.pack("<III", 0xFF, 0xFF00, 0xFF0000)),
        "rle8-odd": bmp(5, 3, 8, compression=1, palette=palette, rows=RUNS8),
        "rle4-odd": bmp(5, 3, 4, compression=2, palette=palette, rows=RUNS4),
        "rle8-steps": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([1, 3, 0, 2, 1, 1, 2, 4, 0, 0, 5, 6, 0, 1])),
        "rle8-no-end": bmp(2, 1, 8, compression=1, palette=palette, rows=bytes([2, 3, 0, 0])),
        "rle8-full": bmp(2, 2, 8, compression=1, palette=palette, rows=bytes([2, 3, 0, 0, 2, 4])),
    }
    bad = {
        "cut": good["24"][:-1], "header": bmp(3, 2, 24, header=40).replace(b"\x28\0\0\0", b"\x29\0\0\0", 1),
        "bits": bmp(3, 2, 7), "rle": bmp(3, 2, 8, compression=1, palette=palette), "rle24": bmp(3, 2, 24, compression=1),
        "rle-depth": bmp(3, 2, 4, compression=1, palette=palette),
        "rle8-early": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([3, 3, 0, 1])),
        "rle4-early": bmp(5, 3, 4, compression=2, palette=palette, rows=bytes([1, 0x30, 0, 2, 1, 1, 2, 0x45, 0, 1])),
        "rle8-row": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([5, 3, 0, 0, 5, 4, 0, 0, 4, 5])),
        "rle8-cut": bmp(5, 3, 8, compression=1, palette=palette, rows=RUNS8[:-5]),
        "rle4-cut": bmp(5, 3, 4, compression=2, palette=palette, rows=RUNS4[:10]),
        "rle8-run": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([6, 1, 0, 1])),
        "rle8-words": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([3, 1, 0, 3, 1, 1, 1, 0, 0, 1])),
        "rle8-rows": bmp(5, 1, 8, compression=1, palette=palette, rows=bytes([5, 1, 0, 0, 1, 1, 0, 1])),
        "rle8-step": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([0, 2, 6, 0, 0, 1])),
        "rle8-step-up": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([0, 2, 0, 4, 0, 1])),
        "rle8-lines": bmp(5, 1, 8, compression=1, palette=palette, rows=bytes(8)),
        "rle8-colour": bmp(5, 3, 8, compression=1, palette=palette, rows=bytes([5, 16, 0, 1])),
        "rle8-none": bmp(5, 3, 8, compression=1, palette=palette, rows=b""), "jpeg": bmp(3, 2, 24, compression=4),
        "huffman": bmp(3, 2, 1, header=64, compression=3, palette=palette[:8]),
        "far-mask": bmp(3, 2, 16, compression=3, masks=struct.pack("<III", 0xFF0000, 0x7E0, 0x1F)),
        "torn-mask": bmp(3, 2, 24, compression=3, masks=struct.pack("<III", 0xF70000, 0xFF00, 0xFF)), "zero": bmp(0, 2, 24),
        "more-pixels": bmp(3, 2, 24, rows=bytes(48)), "wide": bmp(70000, 1, 1, rows=b""), "negative": bmp(-3, 2, 24, rows=bytes(24)), "short": b"BM" + bytes(9),
        "lowest": bmp(1, -2 ** 31, 24, rows=b""), "inside": good["24"][:10] + struct.pack("<I", 20) + good["24"][14:],
        "cut-header": good["24"][:40], "colour": bmp(5, 2, 8, palette=palette),
    }
    for name, data in good.items():
        write("bmp", f"good-{name}.bmp", data)
    for name, data in bad.items():
        write("bmp", f"bad-{name}.bmp", data)


def pam(width, height, depth, largest, data, kind=""):
    kind = f"TUPLTYPE {kind}\n" if kind else ""
    return f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {largest}\n{kind}ENDHDR\n".encode() + data


def pnm_seeds():
    good = {"p6": b"P6\n2 2\n255\n" + bytes(range(12)), "p5": b"P5 3 1 255 abc",
            "comment": b"P5 # x\n2 # y\n1\n255\nab", "16-bit": b"P5 2 1 4095 \x01a\x0fb", "wide": b"P6\n3 1\n255\n" + bytes(range(9)),
            "p1": b"P1 3 2 0 1 0\n110", "p2": b"P2 2 2 10 0 10 5 9", "p3": b"P3 1 1 255 1 2 3", "p4": b"P4\n9 1\n\x80\x80",
            "pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd",
            "largest": b"P5 4 1 15 \0\1\7\x0f", "16-bit-colour": b"P6 2 1 65535 " + bytes(range(0, 240, 20)),
            "p1-odd": b"P1\n# bits\n5 2\n10110\n0 1 0 0 1\n", "p1-after": b"P1 1 1 1 anything", "p4-odd": b"P4\n11 2\n\xa5\x5f\x0f\xff",
            "p2-comment": b"P2\n3 2\n15\n0 1 15\n7 8 # grey\n9\n", "p3-odd": b"P3 2 1 255 1 2 3\n250 251 255", "p3-16-bit": b"P3 1 1 65535 0 256 65535\n",
            "largest-comment": b"P5 2 1 255# x\nab", "another": b"P5 1 1 255 aP6 1 1 255 bcd", "space-after": b"P5 1 1 255 a \n",
            "pam-grey": pam(3, 1, 1, 255, b"abc", "GRAYSCALE"), "pam-bits": pam(3, 1, 1, 1, b"\0\1\1", "BLACKANDWHITE"),
            "pam-grey-alpha": pam(2, 1, 2, 255, b"abcd", "GRAYSCALE_ALPHA"), "pam-rgb": pam(1, 2, 3, 255, b"abcdef", "RGB"),
            "pam-rgba": pam(1, 2, 4, 255, b"abcdefgh", "RGB_ALPHA"), "pam-untyped": pam(1, 1, 4, 255, b"abcd"),
            "pam-16-bit": pam(1, 1, 2, 65535, b"abcd", "GRAYSCALE_ALPHA")}
    bad = {"cut": b"P6\n2 2\n255\n" + bytes(11), "max": b"P5 1 1 65536 aaaa", "text": b"P3 1 1 255 1 1", "zero": b"P5 0 1 255 ",
           "letters": b"P5 a 1 255 ", "large": b"P5 99999999999999999999 1 255 a", "no-space": b"P5 1 1 255", "p1": b"P1 1 1 2", "pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\nabcde",
           "no-max": b"P5 1 1 0 a", "above": b"P5 1 1 7 a", "comment-end": b"P5 #",
           "joined": b"P5 1 1 255abc", "joined-width": b"P5 1x1 255 a", "after": b"P5 1 1 255 ab", "text-after": b"P2 1 1 255 1 2",
           "text-cut": b"P3 2 1 255 1 2 3 4 5", "text-above": b"P2 1 1 15 16", "text-letter": b"P2 2 1 255 1 x",
           "text-another": b"P2 1 1 255 1 P2 1 1 255 1", "negative": b"P2 2 1 255 1 -1", "bit": b"P1 2 1 12", "bits-cut": b"P1 3 1 1 0",
           "p4-cut": b"P4 9 2 \0\0\0", "p4-after": b"P4 8 1 \0\0", "16-bit-cut": b"P5 2 1 256 aab", "16-bit-above": b"P5 1 1 256 \1\1",
           "text-large": b"P2 30000 2000 255 1", "pam-no-end": b"P7\nWIDTH 1\nHEIGHT 1\n", "pam-line": b"P7\nWIDE 1\nENDHDR\n",
           "pam-type": pam(1, 1, 4, 255, b"abcd", "CMYK"), "pam-depth": pam(1, 1, 3, 255, b"abc", "RGB_ALPHA"),
           "pam-deep": pam(1, 1, 5, 255, b"abcde"), "pam-nothing": b"P7\nENDHDR\n", "pam-cut": pam(2, 1, 4, 255, b"abcdefg"),
           "pam-large": pam(10 ** 12, 1, 1, 255, b"a"), "pam-many": pam(1, 1, 10 ** 9, 255, b"a"),
           "pam-joined": pam(1, 1, 1, 255, b"a").replace(b"ENDHDR\n", b"ENDHDR"), "pam-after": pam(1, 1, 1, 255, b"ab")}
    for name, data in good.items():
        write("pnm", f"good-{name}.pnm", data)
    for name, data in bad.items():
        write("pnm", f"bad-{name}.pnm", data)


def tga(kind, width, height, bits, data, map_bits=0, colours=b"", descriptor=0x20, map_first=0):
    length = len(colours) // ((map_bits + 7) // 8) if map_bits else 0
    return struct.pack("<BBBHHBHHHHBB", 0, 1 if map_bits else 0, kind, map_first, length, map_bits, 0, 0, width, height,
                       bits, descriptor) + colours + data


def tga_footer(picture, extension=0, directory=0, more=b""):
    """A file of version 2: the areas of its footer lie in `more`, from the end of the pixels on."""
    return picture + more + struct.pack("<II", extension, directory) + b"TRUEVISION-XFILE.\0"


def tga_seeds():
    plain = tga(2, 2, 1, 24, bytes(range(6)))
    end = len(plain)
    extension = struct.pack("<H", 495).ljust(482, b"\0") + struct.pack("<III", 0, 0, 0) + b"\0"
    tags = struct.pack("<HHII", 1, 5, end, 4)
    runs = bytes([0x81, 1, 2, 3, 0x01, 4, 5, 6, 7, 8, 9])
    good = {
        "rgb": tga(2, 2, 2, 24, bytes(range(12))), "rgba": tga(2, 2, 1, 32, bytes(range(8))), "16": tga(2, 2, 1, 16, bytes(4)),
        "grey": tga(3, 3, 2, 8, bytes(range(6))), "mapped": tga(1, 3, 1, 8, b"\0\1\2", 24, bytes(range(9))),
        "runs": tga(10, 2, 2, 24, runs), "grey-runs": tga(11, 3, 1, 8, b"\x82\x07"), "bottom": tga(2, 2, 2, 24, bytes(12), descriptor=0),
        "right": tga(2, 2, 2, 24, bytes(12), descriptor=0x30), "mapped-runs": tga(9, 3, 1, 8, b"\x82\x01", 32, bytes(range(8))),
        "mapped15": tga(1, 2, 1, 8, b"\0\1", 15, bytes(4)), "15": tga(2, 2, 1, 15, bytes(4)),
        "grey16": tga(3, 2, 1, 16, bytes(4)), "mapped16": tga(1, 2, 1, 16, b"\0\0\1\0", 24, bytes(6)),
        "first": tga(1, 2, 1, 8, b"\1\2", 24, bytes(6), map_first=1), "version-2": tga_footer(plain),
        "version-2-extension": tga_footer(plain, end, more=extension), "version-2-directory": tga_footer(plain, 0, end + 4, b"\1\2\3\4" + tags),
    }
    bad = {"footer-more": tga_footer(plain, more=b"x"), "extension-late": tga_footer(plain, end + 1, more=b"x" + extension),
           "directory-late": tga_footer(plain, 0, end + 8, b"x" * 8 + tags[:4] + struct.pack("<II", end + 1, 4)), "packet": tga(10, 2, 1, 24, bytes([0x8A, 1, 2, 3])),
           "cut": good["rgb"][:-1], "runs": good["runs"][:-1], "index": tga(1, 3, 1, 8, b"\0\1\x09", 24, bytes(range(9))),
           "zero": tga(2, 0, 2, 24, b""), "bits": tga(2, 2, 2, 8, bytes(12)), "wide": tga(2, 65535, 1, 24, b""),
           "map": tga(1, 3, 1, 8, b"\0\1\2", 7, bytes(range(9))), "cut-map": tga(1, 3, 1, 8, b"", 24, bytes(9))[:20],
           "no-map": tga(1, 3, 1, 8, b"\0\1\2")}
    for name, data in good.items():
        write("tga", f"good-{name}.tga", data)
    for name, data in bad.items():
        write("tga", f"bad-{name}.tga", data)


def gif(width, height, indices, bits=2, palette=None, frame=None, flags=0, control=b"", version=b"89a", tail=b"\0;", codes_after=()):
    """One frame whose pixels are codes of their own: a clear code comes before the table grows beyond their width."""
    palette = bytes(i % 256 for i in range(3 << bits)) if palette is None else palette
    clear, text = 1 << bits, ""
    def put(code):
        nonlocal text
        text = format(code, f"0{bits + 1}b") + text
    for i, index in enumerate(indices):
        if i % ((1 << bits) - 2 or 1) == 0:
            put(clear)
        put(index)
    for code in codes_after:
        put(code)
    put(clear + 1)
    text = "0" * (-len(text) % 8) + text
    data = int(text, 2).to_bytes(len(text) // 8, "little")
    left, top, across, down = frame or (0, 0, width, height)
    screen = b"GIF" + version + struct.pack("<HHBBB", width, height, (0x80 | bits - 1) if palette else 0, 0, 0) + palette
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
    return screen + control + b"," + struct.pack("<HHHHB", left, top, across, down, flags) + bytes([bits]) + blocks + tail


def gif_seeds():
    comment, clear = b"!\xfe\x03abc\0", b"!\xf9\x04\x01\0\0\x02\0"
    good = {"plain": gif(3, 2, [0, 1, 2, 3, 2, 1]), "interlaced": gif(2, 9, [i % 4 for i in range(18)], flags=0x40),
            "transparent": gif(3, 2, [2, 1, 2, 3, 2, 1], control=clear), "inside": gif(5, 4, [1, 2, 3, 0], frame=(2, 1, 2, 2)),
            "outside": gif(2, 2, [1, 2, 3, 0], frame=(1, 1, 2, 2)), "comment": gif(2, 1, [0, 3], control=comment, version=b"87a"),
            "256": gif(4, 4, range(0, 256, 16), bits=8), "clear-last": gif(2, 1, [0, 1], codes_after=[4])}
    # Codes that repeat: 0, then the code that is just being made.
    codes, text = [4, 0, 6, 7, 8, 0, 5], ""
    for code, width in zip(codes, [3, 3, 3, 3, 4, 4, 4]):
        text = format(code, f"0{width}b") + text
    text = "0" * (-len(text) % 8) + text
    data = int(text, 2).to_bytes(len(text) // 8, "little")
    whole = gif(11, 1, [])
    good["runs"] = whole[:whole.index(b",") + 10] + bytes([2, len(data)]) + data + b"\0;"
    bad = {"cut": good["plain"][:-3], "header": good["plain"][:12], "version": gif(3, 2, [0] * 6, version=b"88a"),
           "more": gif(3, 1, [0, 1, 2, 3]), "more-late": gif(2, 1, [0, 1], codes_after=[2]), "early": gif(3, 2, [0, 1, 2]), "empty": gif(3, 2, []), "zero": gif(3, 2, [], frame=(0, 0, 0, 2)),
           "code": good["plain"].replace(b"\x02\x03", b"\x02\x03", 1)[:-6] + b"\xff\xff\xff\xff\0;", "palette": gif(3, 2, [0] * 6, palette=b""),
           "bits": gif(3, 2, [0] * 6).replace(b",\0\0\0\0\3\0\2\0\0\2", b",\0\0\0\0\3\0\2\0\0\x0d"), "no-frame": good["plain"][:25] + b";",
           "block": good["plain"][:25] + b"x", "wide": gif(65535, 65535, [0]), "cut-comment": good["comment"][:30],
           "colour": (lambda data: data[:10] + b"\x81" + data[11:])(gif(3, 2, [0, 1, 2, 7, 2, 1], bits=3, palette=bytes(12)))}
    for name, data in good.items():
        write("gif", f"good-{name}.gif", data)
    for name, data in bad.items():
        write("gif", f"bad-{name}.gif", data)


WEBPS = {  # written by libwebp
    "lossless": "UklGRjoAAABXRUJQVlA4TC0AAAAvBIAAAHcgEEjC2V9yhYn4/f/8J5eBgkaSmu+FrgVPaMETWhAW0f9YW87N9wcA",
    "lossy": "UklGRlAAAABXRUJQVlA4IEQAAACwAQCdASoFAAMAA4BaJbACdAD0bSIoAM4PV4l7CY4WH8cREMgpjbPll72XnfOvkxlp3LRO/4nHX/5OTLN/f1Kf44AAAA==",
    "alpha": "UklGRjgAAABXRUJQVlA4TCsAAAAvA4AAEF8gEEjGyR9yhokQEiT8H6x1KDJYPyAIIFGIJZZZZpll0oj+B6Y7AA==",
    "lossy-alpha": "UklGRnIAAABXRUJQVlA4WAoAAAAQAAAAAwAAAgAAQUxQSA0AAAAAABQoPFBkeIygtMjcAFZQOCA+AAAAsAEAnQEqBAADAALATCWQAnQBDiQDEADOKNOk/XaGGTuBD4+0RxfDNrGG9sl4pypk+1jvfXkNfTtEfPu/WAA=",
    "exif": "UklGRm4AAABXRUJQVlA4WAoAAAAIAAAABAAAAgAAVlA4TC0AAAAvBIAAAHcgEEjC2V9yhYn4/f/8J5eBgkaSmu+FrgVPaMETWhAW0f9YW87N9wcARVhJRhoAAABJSSoACAAAAAEAEgEDAAEAAAAGAAAAAAAAAA==",
}
ANIMATED_WEBP = "UklGRqIAAABXRUJQVlA4WAoAAAACAAAABAAAAgAAQU5JTQYAAAAAAAAAAABBTk1GRgAAAAAAAAAAAAQAAAIAADIAAAJWUDhMLQAAAC8EgAAAdyAQSMLZX3KFifj9//wnl4GCRpKa74WuBU9owRNaEBbR/1hbzs33BwBBTk1GKAAAAAAAAAAAAAQAAAIAADIAAABWUDhMDwAAAC8EgAAABxD9j/4HIqL/AQA="


def webp_seeds():
    good = {name: base64.b64decode(text) for name, text in WEBPS.items()}
    plain = good["lossless"]
    good["animated"] = base64.b64decode(ANIMATED_WEBP)
    animated = good["animated"]
    frame = animated.index(b"ANMF")
    bad = {"no-frame": animated.replace(b"ANMF", b"ANMX"), "frame-leaves": animated[:frame + 8] + b"\3" + animated[frame + 9:],
           "cut": plain[:-4], "header": plain[:12], "kind": plain.replace(b"VP8L", b"VP8M"),
           "length": plain[:4] + b"\xff\xff\xff\x7f" + plain[8:], "zeros": plain[:24] + bytes(len(plain) - 24),
           "cut-lossy": good["lossy"][:-30], "short": b"RIFF\1\0\0\0WEBP"}
    for name, data in good.items():
        write("webp", f"good-{name}.webp", data)
    for name, data in bad.items():
        write("webp", f"bad-{name}.webp", data)


def image_seeds(pngs):
    write("image", "good-exif.png", pngs["exif"])
    write("image", "good-pnm", b"P5 3 1 255 abc")
    for name, data in WEBPS.items():
        write("image", f"good-{name}.webp", base64.b64decode(data))
    for name, tiff in {"no-entry": b"II*\0\x08\0\0\0\0\0", "entries-cut": b"II*\0\x08\0\0\0\2\0" + bytes(12), "far": b"II*\0\xff\0\0\0\1\0", "magic": b"II+\0\x08\0\0\0\1\0",
                       "other": b"XX*\0\x08\0\0\0\1\0", "nine": exif(9), "another-tag": struct.pack("<4sIHHHIHHI", b"II*\0", 8, 1, 0x100, 3, 1, 6, 0, 0)}.items():
        write("image", f"good-exif-{name}.png", png(3, 2, 8, 0, extra=chunk(b"eXIf", tiff)))
    write("image", "good-tga", tga(2, 2, 2, 24, bytes(range(12))))
    write("image", "good-bmp", bmp(3, 2, 24))
    for name, data in {"empty": b"", "gif": b"GIF89a", "webp": b"RIFF\0\0\0\0WEBP", "tiff": b"II*\0", "tiff2": b"MM\0*", "gzip": b"\x1f\x8b",
                       "psd": b"8BPS", "text": b"hello", "binary": bytes([1, 2, 3, 250])}.items():
        write("image", f"bad-{name}", data)


# --- JPEG ---

class Bits:
    """A bit stream of a JPEG scan. DC categories have codes of 4 bits; of AC there are 0 (end of block), 10 (a
    coefficient of +-1) and 110 (16 zeros)."""

    def __init__(self):
        self.bits = ""

    def dc(self, value):
        size = abs(value).bit_length()
        self.bits += format(size, "04b")
        self.bits += format(value if value > 0 else value + (1 << size) - 1, f"0{size}b") if size else ""

    def bytes(self):
        text = self.bits + "1" * (-len(self.bits) % 8)
        data = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))
        return data.replace(b"\xff", b"\xff\0")


def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


TABLES = (segment(0xDB, b"\0" + bytes(min(255, 8 + i) for i in range(64))) +
          segment(0xC4, b"\0" + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12))) +
          segment(0xC4, b"\x10" + bytes([1, 1, 1] + [0] * 13) + b"\0\1\xf0"))


def scan(bits, components, first, last, high, low):
    head = bytes([len(components)]) + b"".join(bytes([c, 0]) for c in components) + bytes([first, last, high << 4 | low])
    return segment(0xDA, head) + bits.bytes()


def jpeg(width, height, sampling, progressive=False, extra=b"", precision=8, sof=None, restart=0):
    numbers = range(1, len(sampling) + 1)
    frame = struct.pack(">BHHB", precision, height, width, len(sampling)) + b"".join(
        bytes([n, h << 4 | v, 0]) for n, (h, v) in zip(numbers, sampling))
    out = b"\xff\xd8" + extra + TABLES + (segment(0xDD, struct.pack(">H", restart)) if restart else b"")
    out += segment(sof or (0xC2 if progressive else 0xC0), frame)
    wide, tall = max(h for h, _ in sampling), max(v for _, v in sampling)
    units = -(-width // (8 * wide)) * -(-height // (8 * tall))
    whole = sampling if len(sampling) > 1 else [(1, 1)]
    units = -(-width // 8) * -(-height // 8) if len(sampling) == 1 else units
    bits, last = Bits(), [0] * len(sampling)
    for unit in range(units):
        for c, (h, v) in enumerate(whole):
            for block in range(h * v):
                value = (unit * 37 + block * 11 + c * 5) % 120 - 60
                bits.dc(value - last[c])
                last[c] = value
                if not progressive:
                    bits.bits += "100" if block % 2 else "0"
                    bits.bits += "0" if block % 2 else ""
    if not progressive:
        return out + scan(bits, numbers, 0, 63, 0, 0) + b"\xff\xd9"
    out += scan(bits, numbers, 0, 0, 0, 1)
    for c, (h, v) in enumerate(sampling):
        rows, columns = -(-height * v // (8 * tall)), -(-width * h // (8 * wide))
        ac = Bits()
        ac.bits = "0" * (rows * columns)
        out += scan(ac, [c + 1], 1, 63, 0, 0)
    refine = Bits()
    refine.bits = ("01" * (units * sum(h * v for h, v in whole)))[:units * sum(h * v for h, v in whole)]
    return out + scan(refine, numbers, 0, 0, 1, 0) + b"\xff\xd9"


def jpeg_seeds():
    full, half = [(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)]
    jfif = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    adobe = segment(0xEE, b"Adobe\0\x64\0\0\0\0\2")
    good = {"grey": jpeg(9, 10, [(1, 1)]), "444": jpeg(9, 10, full), "420": jpeg(20, 17, half, extra=jfif), "progressive": jpeg(20, 17, half, True),
            "progressive-grey": jpeg(9, 10, [(1, 1)], True), "cmyk": jpeg(8, 8, [(1, 1)] * 4, extra=adobe), "422": jpeg(20, 9, [(2, 1), (1, 1), (1, 1)]),
            "exif": jpeg(9, 10, [(1, 1)], extra=segment(0xE1, b"Exif\0\0" + exif(8))), "exif-big": jpeg(9, 10, [(1, 1)], extra=segment(0xE1, b"Exif\0\0" + exif(3, False))),
            "comment": jpeg(8, 8, full, extra=segment(0xFE, b"hello"))}
    grey = good["grey"]
    bad = {"cut": grey[:-2], "cut-scan": grey[:-6], "12-bit": jpeg(8, 8, [(1, 1)], precision=12), "lossless": jpeg(8, 8, [(1, 1)], sof=0xC3),
           "wide": jpeg(65000, 8, [(1, 1)])[:300], "zero": jpeg(0, 8, [(1, 1)]), "tables-only": b"\xff\xd8" + TABLES + b"\xff\xd9", "two": jpeg(8, 8, [(1, 1)] * 2),
           "only-soi": b"\xff\xd8", "no-tables": grey.replace(TABLES, b""), "restart": jpeg(40, 8, [(1, 1)], restart=1),
           "scans": b"".join([jpeg(8, 8, [(1, 1)], True)[:-2]] + [scan(Bits(), [1], 0, 0, 1, 0)] * 200) + b"\xff\xd9"}
    for name, data in good.items():
        write("jpeg", f"good-{name}.jpg", data)
    for name, data in bad.items():
        write("jpeg", f"bad-{name}.jpg", data)
    write("image", "good-exif.jpg", good["exif"])
    write("image", "good-exif-big.jpg", good["exif-big"])
    write("image", "good-fill.jpg", jpeg(9, 10, [(1, 1)], extra=b"\xff" + segment(0xE1, b"Exif\0\0" + exif(8))))
    write("image", "good-comment.jpg", good["comment"])


# --- data sets ---

def data_seeds():
    images = struct.pack(">HBBIII", 0, 8, 3, 2, 2, 3) + bytes(range(12))
    labels = struct.pack(">HBBI", 0, 8, 1, 4) + bytes(4)
    for name, data in {"images": images, "labels": labels, "gzip": gzip.compress(images, mtime=0), "empty": struct.pack(">HBBI", 0, 8, 1, 0), "int": struct.pack(">HBBIii", 0, 12, 1, 2, 5, 300), "short": struct.pack(">HBBIh", 0, 11, 1, 1, -2),
                       "rank4": struct.pack(">HBBIIII", 0, 8, 4, 1, 2, 2, 3) + bytes(12)}.items():
        write("idx", f"good-{name}", data)
    for name, data in {"cut": images[:-1], "after": images + b"x", "rank": struct.pack(">HBB", 0, 8, 5), "type": struct.pack(">HBB", 0, 9, 1),
                       "zeros": b"\1" + images[1:], "int-cut": struct.pack(">HBBIi", 0, 12, 1, 2, 5), "huge": struct.pack(">HBBIII", 0, 8, 3, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1),
                       "gzip-cut": gzip.compress(images, mtime=0)[:-9], "gzip-crc": gzip.compress(images, mtime=0)[:-8] + bytes(8),
                       "gzip-less": gzip.compress(images[:-1], mtime=0), "gzip-bad": gzip.compress(images, mtime=0)[:10] + b"\xff" * 20, "short": b"\0\0", "header": b"\0\0\x08\x03\0\0",
                       "large": struct.pack(">HBBI", 0, 8, 1, 2 ** 21), "lies": struct.pack(">HBBI", 0, 8, 1, 2 ** 20)}.items():
        write("idx", f"bad-{name}", data)

    def idx_set(images, labels):
        return struct.pack(">H", len(images)) + images + labels

    grey, bytes_of_labels = struct.pack(">HBBIII", 0, 8, 3, 2, 2, 3), struct.pack(">HBBI", 0, 8, 1, 2)
    for name, data in {"grey": idx_set(images, bytes_of_labels + b"\1\4"), "colour": idx_set(struct.pack(">HBBIIII", 0, 8, 4, 2, 1, 2, 3) + bytes(12), bytes_of_labels + b"\0\0"),
                       "short": idx_set(images, struct.pack(">HBBIhh", 0, 11, 1, 2, 3, 9))}.items():
        write("idx_set", f"good-{name}", data)
    for name, data in {"class": idx_set(images, bytes_of_labels + b"\1\x0a"), "negative": idx_set(images, struct.pack(">HBBIhh", 0, 11, 1, 2, 3, -1)), "count": idx_set(images, struct.pack(">HBBI", 0, 8, 1, 1) + b"\0"),
                       "labels-rank": idx_set(images, struct.pack(">HBBII", 0, 8, 2, 2, 1) + b"\0\0"), "rank": idx_set(struct.pack(">HBBII", 0, 8, 2, 2, 3) + bytes(6), bytes_of_labels + b"\0\0"),
                       "integers": idx_set(struct.pack(">HBBIII", 0, 12, 3, 2, 1, 1) + bytes(8), bytes_of_labels + b"\0\0"), "side": idx_set(struct.pack(">HBBIII", 0, 8, 3, 2, 0, 3), bytes_of_labels + b"\0\0"),
                       "channels": idx_set(struct.pack(">HBBIIII", 0, 8, 4, 2, 1, 1, 2) + bytes(4), bytes_of_labels + b"\0\0"), "nothing": b""}.items():
        write("idx_set", f"bad-{name}", data)

    for name, data in {"row": "3,1,2.5,-7e3", "one": "0,1", "inf": "1,inf,nan", "tiny": "1,1e-40"}.items():
        write("csv", f"good-{name}", data)
    for name, data in {"empty": "", "no-values": "3", "letters": "3,a", "negative": "-1,2", "fraction": "1.5,2", "trailing": "1,2,",
                       "huge": "1,1e999", "class": "99999999999999999999,1", "space": "1, 2", "zero": "1,2\0"}.items():
        write("csv", f"bad-{name}", data)
    for name, data in {"rows": "a,b\r\n1,2\n\n,\n", "quotes": 'a,"b ""c"", d"\n"","x\ny"\n', "mark": "\ufeffa,b\n1,2", "empty": "", "one": "a", "nul": "a\0,b\n",
                       "returns": "a\rb,c\r", "last": '1,""'}.items():
        write("csv_records", f"good-{name}", data)
    for name, data in {"open": 'a,"b\nc', "after": '"a"b,c\n', "within": 'a"b,c\n', "only": '"', "odd": '"""'}.items():
        write("csv_records", f"bad-{name}", data)
    for name, data in {"rows": "class,x\n1,2\n\n2,3\r\n3,4", "empty": "", "ends": "\n\n\r\n", "nul": "a\0b\nc"}.items():
        write("text_lines", f"good-{name}", data)

    def manifest(entries, header="binade-checksums 1 crc32c", end=None):
        text = header + "\n" + "".join(f"{c:08x} {s} {n}\n" for c, s, n in entries)
        return text + (f"end {len(entries)} {crc32c(text.encode()):08x}\n" if end is None else end)

    for name, data in {"two": manifest([(1, 2, "a/b.png"), (0xABCDEF01, 2 ** 40, "c")]), "none": manifest([]),
                       "escaped": manifest([(0, 0, "a\\x5cb"), (0, 0, "b\\x0ac")])}.items():
        write("checksums", f"good-{name}", data)
    for name, data in {"crc": manifest([(1, 2, "a")], end="end 1 00000000\n"), "cut": manifest([(1, 2, "a")])[:-1], "header": manifest([], "x"),
                       "sorted": manifest([(1, 2, "b"), (1, 2, "a")]), "twice": manifest([(1, 2, "a"), (1, 2, "a")]),
                       "absolute": manifest([(1, 2, "/a")]), "escape": manifest([(1, 2, "a\\x61")]), "half": manifest([(1, 2, "a\\x6")]),
                       "end": manifest([], end=""), "after": manifest([]) + "x", "size": manifest([(1, -2, "a")]), "no-name": manifest([(1, 2, "")]),
                       "empty": "", "long": manifest([(1, 2, "a")]).replace(" 2 ", " 99999999999999999999 ")}.items():
        write("checksums", f"bad-{name}", data)
    listing_seeds()


def listing(*folders, start="binade-listing 1 crc32c ", table=None, more=b""):
    """A cache of listings. A folder: path, entries ("fNAME"), and numbers of its line that lie."""
    lines, blocks = "", b""
    for path, entries, *lies in folders:
        block = "".join(entry + "\0" for entry in entries).encode()
        line = dict(node=7, size=4096, links=2, modified=10 ** 18, changed=10 ** 18 + 1, entries=len(entries), bytes=len(block), crc=f"{crc32c(block):08x}")
        lines += " ".join(["folder", *(str(value) for value in (line | (lies[0] if lies else {})).values()), path]) + "\n"
        blocks += block
    return f"{start}{len(lines) if table is None else table:016x} {crc32c(lines.encode()):08x}\n{lines}".encode() + blocks + more


def listing_seeds():
    one, two = ("/data/a", ["f1.jpg", "f2.jpg", "olink.png"]), ("/data", ["da", "fnotes.txt"])
    for name, data in {"two": listing(two, one), "none": listing(), "empty-folder": listing(("/data/a", [])), "escaped": listing(("/data/a\\x0ab", ["f\n"])),
                       "old": listing(("/", ["d\xff"], {"modified": -1, "changed": -(2 ** 63)})), "links": listing(two, ("/data/a", one[1], {"node": 2 ** 64 - 1}))}.items():
        write("listing", f"good-{name}", data)
    for name, data in {"empty": "", "foreign": "file,label\n", "version": listing(one, start="binade-listing 0 crc32c "), "table": listing(one, table=2 ** 63),
                       "table-long": listing(one, table=2 ** 20), "sorted": listing(one, two), "twice": listing(one, one), "relative": listing(("data", ["fa"])),
                       "crc": listing(("/a", ["fa"], {"crc": "00000000"})), "count": listing(("/a", ["fa"], {"entries": 0})), "many": listing(("/a", ["fa"], {"entries": 2 ** 62})),
                       "long": listing(("/a", ["fa"], {"bytes": 2 ** 63})), "short": listing(("/a", ["fa"], {"bytes": 2})), "overflow": listing(("/a", ["fa"], {"bytes": 2 ** 64 - 1}), one),
                       "wraps": listing(("/a", ["fa"], {"bytes": 2 ** 64 - 10}), ("/b", ["fa"], {"bytes": 16})),
                       "zeros": listing(("/a", ["fa"], {"node": "07"})), "number": listing(("/a", ["fa"], {"links": 2 ** 64})), "escape": listing(("/a\\x61", ["fa"])),
                       "names": listing(("/a", ["fb", "fa"])), "same": listing(("/a", ["fa", "da"])), "kind": listing(("/a", ["xa"])), "no-name": listing(("/a", ["fa", "f"])),
                       "slash": listing(("/a", ["f../b"])), "parent": listing(("/a", ["d.."])), "self": listing(("/a", ["d."])), "after": listing(one, more=b"x"), "cut": listing(one)[:-1]}.items():
        write("listing", f"bad-{name}", data)


# --- JSON and safetensors ---

def safetensors(header, data=b""):
    header = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(header)) + header + data


def tensor(name, kind="F32", shape="[1]", offsets="[0,4]"):
    return f'"{name}":{{"dtype":"{kind}","shape":{shape},"data_offsets":{offsets}}}'


def json_seeds():
    good = {"object": '{"a":[1,2,{"b":null}],"c":"\\u00e9\\n","d":true,"e":false}', "number": "9007199254740992", "pair": '"\\ud83d\\ude00"',
            "space": " \t\r\n[ ] ", "empty": "{}", "escapes": '"\\"\\\\\\/\\b\\f\\n\\r\\t"', "utf8": '"é漢😀"',
            "skip": '[[1],{"a":[2]},"b"] '}
    bad = {"cut": '{"a":', "depth": "[[[[[0]]]]]", "twice": '{"a":1,"\\u0061":2}', "minus": "-1", "float": "1.0", "zero": "01",
           "large": "9007199254740993", "larger": "99999999999999999999", "surrogate": '"\\ud800"', "low": '"\\udc00"', "utf8": b'"\xff"',
           "control": '"\x01"', "escape": '"\\x"', "hex": '"\\u00g0"', "after": "{} {}", "comma": "[1,]", "comma2": '{"a":1,}', "colon": '{"a" 1}',
           "word": "nul", "key": "{1:2}", "close": "[}", "nothing": "", "exponent": "1e3", "half": '"\\ud83d\\u0041"', "open": '"abc', "cut-hex": '"\\u00'}
    bad |= {"list-cut": "[1", "object-cut": '{"a":1', "list-more": "[1 2]", "object-more": '{"a":1 2}', "keys": "{" + ",".join(f'"{i}":0' for i in range(1001)) + "}"}
    for name, data in good.items():
        write("json", f"good-{name}", data)
    for name, data in bad.items():
        write("json", f"bad-{name}", data)


def safetensors_seeds():
    two = "{" + tensor("a") + "," + tensor("b", "U8", "[2,2]", "[4,8]") + "}"
    good = {"two": (two, 8), "none": ("{}", 0), "metadata": ('{"__metadata__":{"format":"pt"},' + tensor("w\\u00e9", "BF16", "[2]") + "}", 4),
            "scalar": ("{" + tensor("s", "F64", "[]", "[0,8]") + "}", 8), "empty": ("{" + tensor("e", "I64", "[0,5]", "[0,0]") + "}", 0),
            "f8": ("{" + tensor("q", "F8_E4M3", "[4]") + "}", 4), "f6": ("{" + tensor("q", "F6_E2M3", "[4]", "[0,3]") + "}", 3),
            "unknown": ('{"a":{"dtype":"U8","shape":[1],"extra":{"x":[1]},"data_offsets":[0,1]}}', 1),
            "padded": ("{" + tensor("a") + "}      ", 4), "bool": ("{" + tensor("b", "BOOL", "[2]", "[0,2]") + "}", 2)}
    bad = {"hole": ("{" + tensor("a", "U8", "[1]", "[1,2]") + "}", 2), "overlap": ("{" + tensor("a") + "," + tensor("b") + "}", 4),
           "overflow": ("{" + tensor("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}", 0), "rank": ("{" + tensor("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") + "}", 1),
           "type": ("{" + tensor("a", "X9") + "}", 4), "missing": ('{"a":{"dtype":"U8","shape":[1]}}', 1), "array": ("[]", 0),
           "backwards": ("{" + tensor("a", "U8", "[1]", "[1,0]") + "}", 1), "span": ("{" + tensor("a", "F32", "[2]") + "}", 4),
           "bits": ("{" + tensor("a", "F4", "[3]", "[0,2]") + "}", 2), "name": ("{" + tensor("") + "}", 4), "nul": ("{" + tensor("\\u0000") + "}", 4),
           "metadata": ('{"__metadata__":{"a":1}}', 0), "metadata2": ('{"__metadata__":[]}', 0), "shape": ("{" + tensor("a", "U8", "2") + "}", 4),
           "size": ("{" + tensor("a", "U8", '["2"]') + "}", 4), "three": ("{" + tensor("a", "U8", "[2]", "[0,1,2]") + "}", 2), "long": ("{" + tensor("n" * 1025) + "}", 4),
           "trailing": ("{" + tensor("a") + "}", 5), "not-object": ('{"a":1}', 0), "dtype": ('{"a":{"dtype":8}}', 0), "one": ("{" + tensor("a", "U8", "[2]", "[0]") + "}", 2)}
    for name, (header, size) in good.items():
        write("safetensors_header", f"good-{name}", struct.pack(">H", size) + header.encode())
        # Binade has no element type for these: the header is read, the tensor is not.
        start = "bad-unknown-dtype" if name in ("f8", "f6") else "good"
        write("safetensors", f"{start}-{name}", safetensors(header, bytes(i & 1 for i in range(size))))

    def checked(data, sums=None, form="1", sign=True, both=True):
        sums = "0" * 8 + f"{crc32c(data):08x}" if sums is None else sums
        fields = f'"binade.crc32c":"{sums}"' + (f',"binade.format":"{form}"' if both else "")
        header = '{"__metadata__":{' + fields + "}," + tensor("a") + "}"
        signed = header.replace('crc32c":"00000000', f'crc32c":"{crc32c(header.encode()):08x}') if sign else header
        return safetensors(signed, data)

    four = b"\1\2\3\4"
    write("safetensors", "good-checked", checked(four))
    for name, data in {"header": checked(four, sign=False), "sum": checked(four, "0" * 8 + "00000001"), "format": checked(four, form="9"), "few": checked(four, "0" * 8), "hex": checked(four, "0" * 8 + "0000000G"),
                       "half": checked(four, both=False), "short": checked(four, "0000", sign=False), "hex-header": checked(four, "G" * 16, sign=False)}.items():
        write("safetensors", f"bad-checked-{name}", data)
    for name, (header, size) in bad.items():
        write("safetensors_header", f"bad-{name}", struct.pack(">H", size) + header.encode())
    for name, data in {"trailing": safetensors(two, bytes(9)), "short": b"1234567", "zero": safetensors(""), "huge": struct.pack("<Q", 2 ** 63) + b"{}", "cut": safetensors(two, bytes(7)),
                       "most": struct.pack("<Q", 2 ** 64 - 1) + b"{}", "bool": safetensors("{" + tensor("b", "BOOL", "[1]", "[0,1]") + "}", b"\2")}.items():
        write("safetensors", f"bad-{name}", data)


# --- the files of a run ---

def dump(root, indent):
    # Writes as nlohmann::json does: sorted names, UTF-8 as it is.
    return json.dumps(root, sort_keys=True, ensure_ascii=False, indent=indent, separators=(",", ": " if indent else ":"))


def sealed(root):
    text = dump(root, None)
    return dump({**root, "checksum": f"{crc32c(text.encode()):08x}"}, 1) + "\n"


def run_seeds():
    record = {"bytes": 12, "crc32c": "0000abcd"}
    root = {"format": "binade checkpoint 2", "step": 7, "features": [], "fields": {"epoch": "1", "é": "\n"}, "files": {"model.safetensors": record}}
    old = {name: value for name, value in root.items() if name != "features"} | {"format": "binade checkpoint 1"}
    write("manifest", "good-two", sealed(root))
    write("manifest", "good-one", sealed(old))
    write("sealed_manifest", "good-two", dump(root, None))
    write("sealed_manifest", "good-feature", dump(root | {"features": ["delayed-scales"]}, None))
    changes = {"step": {"step": -1}, "step2": {"step": 2 ** 53 + 1}, "step3": {"step": 1.5}, "newer": {"format": "binade checkpoint 3"}, "format": {"format": "x"},
               "feature": {"features": ["x"]}, "parent": {"files": {"../x": record}}, "dots": {"files": {"..": record}}, "own": {"files": {"manifest.json": record}},
               "crc": {"files": {"a": {"bytes": 1, "crc32c": "ABCD0000"}}}, "crc2": {"files": {"a": {"bytes": 1, "crc32c": 5}}}, "bytes": {"files": {"a": {"bytes": -1, "crc32c": "00000000"}}},
               "files": {"files": []}, "fields": {"fields": {"a": 1}}, "format2": {"format": 2}, "nul": {"files": {"a\0b": record}}, "features": {"features": 5},
               "record": {"files": {"a": 1}}, "empty": {"files": {"": record}}, "features2": {"features": "delayed-scales"},
               "features3": {"features": ["delayed-scales", "delayed-scales"]}}
    for name, change in changes.items():
        write("sealed_manifest", f"bad-{name}", dump(root | change, None))
    for name, data in {"checksum": sealed(root).replace('"step": 7', '"step": 8'), "cut": sealed(root)[:-2], "space": sealed(root) + " ", "nothing": "", "deep": "[" * 100,
                       "list": "[]", "utf8": b'{"format":"\xff"}', "missing": sealed({"format": "binade checkpoint 2"})}.items():
        write("manifest", f"bad-{name}", data)

    names = sealed({"files": ["manifest.json", "model.safetensors"], "format": "binade checkpoint files 1"})
    write("file_list", "good-two", names)
    write("file_list", "good-cut", names[:40])
    write("file_list", "good-nothing", "")
    for name, data in {"text": "x", "changed": names.replace("model", "nodel"), "numbers": '{\n "checksum": "00000000",\n "files": [1]}',
                       "no-files": '{\n "checksum": "00000000"}'}.items():
        write("file_list", f"bad-{name}", data)

    lock = {"format": "binade run lock 1", "host": "h", "boot": "b", "pid_namespace": "pid:[1]", "pid": 5, "start": 9, "token": "0123456789abcdef", "earlier": []}
    write("run_lock", "good-lock", json.dumps(lock))
    write("run_lock", "good-earlier", json.dumps(lock | {"earlier": ["fedcba9876543210"]}))
    for name, change in {"wide-pid": {"pid": 2 ** 32 + 5}, "real-pid": {"pid": 1e300}, "real-start": {"start": 1e300}, "negative-start": {"start": -1}, "pid": {"pid": 0}, "pid2": {"pid": -1}, "token": {"token": "x"}, "format": {"format": "x"}, "earlier": {"earlier": 5}, "host": {"host": None}}.items():
        write("run_lock", f"bad-{name}", json.dumps(lock | change))
    write("run_lock", "bad-text", "x")

    line = {"epoch": 0, "train_loss": 1.5, "samples_per_second": 3.0}
    write("metrics", "good-lines", "".join(json.dumps(line | {"epoch": e}) + "\n" for e in range(5)))
    for name, data in {"cut": '{"epoch": 0}\n{"epo', "other": '[]\n5\n{"epoch": "x"}\n{"epoch": 1.5}\n\n', "nothing": "", "again": '{"epoch":0,"test_accuracy":1,"samples_per_second":2}\n',
                       "deep": "[" * 2000 + "\n"}.items():
        write("metrics", f"good-{name}", data)

    record = {"step": 1, "kind": "weight_gradient", "layer": "fc", "tensor": "fc.weight", "elements": 4, "zeros": 0, "nans": 0, "infinities": 0, "largest": 1.0,
              "least_exponent": -3, "exponents": [1, 2, 1], "f16_flushed": 0.25, "static_scales": [{"scale": 2, "flushed": 1, "subnormal": 0, "overflow": 0}]}
    write("lens", "good-one", json.dumps(record) + "\n")
    write("lens", "good-worst", json.dumps(record | {"worst": [[-3, [0, 1], 0.15, 0.1499, 0.15], [-2, [], 0.3, 0.3, None]]}) + "\n")
    write("lens", "good-two", "".join(json.dumps(record | {"step": s, "tensor": t, "kind": "update", "changed": 0.5}) + "\n" for s in range(3) for t in "ab") + '{"cut')
    write("lens", "good-stored", json.dumps(record | {"stored": "f16", "scale": 1024.0, "tensor": "t" * 200, "static_scales": [{"scale": 2, "flushed": None, "subnormal": 0, "overflow": 0}]}) + "\n")
    write("lens", "good-not-stored", json.dumps({k: v for k, v in record.items() if k != "static_scales"} | {"kind": "activation"}) + "\n")
    for name, change in {"wide-step": {"step": 1e300}, "wide-least": {"least_exponent": 1e300}, "least-cut": {"least_exponent": 2 ** 32 - 3}, "worst-wide": {"worst": [[1e300, [0], 1.0, 1.0, 1.0]]},
                         "worst-place": {"worst": [[1, [1e300], 1.0, 1.0, 1.0]]}, "exponents": {"least_exponent": 120, "exponents": [1] * 20}, "least": {"least_exponent": -999}, "step": {"step": "x"}, "counts": {"exponents": {"a": 1}},
                         "scales": {"static_scales": 5}, "layer": {"layer": 5}, "worst": {"worst": [[1, [0], 1.0, 1.0]]}, "worst2": {"worst": [[500, [0], 1.0, 1.0, 1.0]]},
                         "worst3": {"worst": [[1, [0] * 17, 1.0, 1.0, 1.0]]}, "worst4": {"worst": [[1, 5, 1.0, 1.0, 1.0]]}, "worst5": {"worst": [[1, [0], None, 1.0, 1.0]]}}.items():
        write("lens", f"bad-{name}", json.dumps(record | change) + "\n")
    write("lens", "bad-scales-differ", json.dumps(record) + "\n" + json.dumps(record | {"static_scales": [{"scale": 3, "flushed": 1, "subnormal": 0, "overflow": 0}]}) + "\n")
    errors = {"elements": 4, "not_finite": 0, "introduced": 1e-4, "inherited": 2e-4, "total": 3e-4, "amplification": 1.5, "ulp": 0.25, "worst_ulp": 0.5, "bias": -0.1, "cosine": 0.999}
    shadow = {"step": 5, "scale": 1024.0, "loss": 2.5, "exact": 2.4, "noise": 1e-15, "explained": 0.1, "points": 2, "text": "",
              "rows": [{"module": "fc<1>", "op": "linear", "stored": "f16", "calls": 2, "forward": errors, "backward": errors, "accumulation": 0.0, "budget": -0.05}],
              "weights": [{"name": "fc1.weight", "rounding": 2e-4, "budget": 0.15, "gradient_error": 1e-3, "gradient_cosine": 1.0}]}
    write("shadow", "good-one", json.dumps(shadow) + "\n")
    write("shadow", "good-two", json.dumps(shadow) + "\n" + json.dumps(shadow | {"step": 6, "loss": None, "text": "the loss is not finite"}) + '\n{"cut')
    write("shadow", "good-empty-rows", json.dumps(shadow | {"rows": [], "weights": []}) + "\n")
    write("shadow", "bad-errors", json.dumps(shadow | {"rows": [shadow["rows"][0] | {"forward": {}}]}) + "\n")
    write("shadow", "bad-step", json.dumps(shadow | {"step": "5"}) + "\n")
    write("shadow", "bad-nothing", "")
    write("shadow", "bad-text", "x\n")
    write("lens", "bad-nothing", "")
    write("lens", "bad-text", "x\n")


# --- instruments ---

def trace_text(events, **head):
    head = {"version": 1, "rank": 0, "dropped": 0, "first_step": 4, "begin_ns": 5, "peak_flops": 1e9, "peak_bytes": 2e9,
            "facts": {"cores": "2"}} | head
    lanes = [{"ph": "M", "name": "thread_name", "pid": 0, "tid": i, "ts": 0, "args": {"name": name}} for i, name in enumerate(["main", "loader worker"])]
    return json.dumps({"schemaVersion": 1, "binade": head, "traceEvents": lanes + events})


def span(name, category, begin, length, lane=0, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": lane, "ts": begin, "dur": length, "args": arguments}


def count(name, time, value):
    return {"ph": "C", "name": name, "pid": 0, "tid": 0, "ts": time, "args": {"value": value}}


def instrument_seeds():
    events = []
    for i in range(5):
        at = 100.0 * i
        events += [span(f"ProfilerStep#{i}", "user_annotation", at, 99.5), span("data", "phase", at, 30), span("wait for a batch", "data", at, 30),
                   span("conv2d", "cpu_op", at + 30, 40.125, module="layers.0", phase="forward", shapes="f32 [2, 3] -> f32 [2]", flops=1e4, bytes=100),
                   span("conv2d", "cpu_op", at + 71, 10, module="layers.0", phase="backward", backward=True), span("decode", "data", at, 70, lane=1),
                   span("item", "wait", at + 82, 9, note="train.cpp:40"), span("copy to the device", "gpu_memcpy", at + 92, 5, note="pageable, train.cpp:31", bytes=1e6),
                   count("allocated", at + 90, 1e6 * i), count("live graph nodes", at + 90, 10 * i), count("batch", at + 90, 32), count("cpu time, ms", at + 99, 0.15 * i)]
    whole = trace_text(events)
    write("trace", "good-steps.json", whole)
    write("trace", "good-no-steps.json", trace_text(events[1:5], rank=3))
    write("trace", "good-empty.json", trace_text([]))
    write("trace", "good-facts.json", trace_text(events[:12], facts={"cores": "99999999999999999999", "threads": "-1"}))
    write("trace", "good-values.json", trace_text(events[:12] + [count("batch", 5, 1e300), count("batch", 5, -1), count("cpu time, ms", 6, -1e300)]))
    first = events[3]
    for name, data in {
            "cut": whole[:-9], "other": json.dumps({"traceEvents": events}), "list": "[]", "no-events": json.dumps({"binade": json.loads(whole)["binade"]}),
            "lane": trace_text([first | {"tid": 7}]), "huge-lane": trace_text([first | {"tid": 1e300}]), "negative": trace_text([first | {"ts": -1}]),
            "late": trace_text([first | {"ts": 1e18}]), "kind": trace_text([first | {"ph": "Q"}]), "category": trace_text([first | {"cat": "new"}]),
            "text": trace_text([first | {"dur": "9"}]), "no-args": trace_text([{k: v for k, v in first.items() if k != "args"}]),
            "version": trace_text([], version=2), "rank": trace_text([], rank=-1), "begin": trace_text([], begin_ns=2 ** 63), "facts": trace_text([], facts=[1]),
            "infinite": whole.replace("40.125", "1e999"), "utf8": whole.encode().replace(b"conv2d", b"con\xffd")}.items():
        write("trace", f"bad-{name}.json", data)

    scaler = json.dumps({"scaler": {"init_scale": 1024.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3, "hysteresis": 1, "min_scale": 1.0,
                                    "max_scale": 65536.0, "power_of_two": True}}) + "\n"
    step = {"step": 1, "scale": 1024.0, "outcome": "applied"}
    sizes = {"stored": "f16", "largest": 0.5, "smallest": 1e-7, "elements": 10, "zeros": 2, "chosen_zeros": 1, "least_exponent": -24, "exponents": [1, 0, 7]}
    lines = "".join(json.dumps(step | sizes | {"step": i, "scale": 2.0 ** (10 + i)}) + "\n" for i in range(1, 8))
    write("scaler_log", "good-plain", scaler + json.dumps(step) + "\n")
    write("scaler_log", "good-sizes", scaler + lines + json.dumps(step | {"step": 9, "outcome": "overflow", "bad": "w", "cause": "loss"}) + '\n{"cut')
    write("scaler_log", "good-phase", scaler + json.dumps(step | {"phase": "first"}) + "\n")
    for name, data in {
            "nothing": "", "no-step": scaler, "no-scaler": json.dumps(step) + "\n", "text": scaler + "x\n", "twice": scaler + 2 * (json.dumps(step) + "\n"),
            "phases": scaler + json.dumps(step) + "\n" + json.dumps(step | {"phase": "second"}) + "\n", "scale": scaler + json.dumps(step | {"scale": 0}) + "\n",
            "outcome": scaler + json.dumps(step | {"outcome": "x"}) + "\n", "zeros": scaler + json.dumps(step | sizes | {"chosen_zeros": 3}) + "\n",
            "options": scaler.replace("1024.0", "-1.0") + json.dumps(step) + "\n", "stored": scaler + json.dumps(step | sizes | {"stored": "f8"}) + "\n",
            "wide-step": scaler + json.dumps(step | {"step": 10 ** 36}) + "\n", "wide-count": scaler + json.dumps(step | sizes | {"elements": 1e30}) + "\n"}.items():
        write("scaler_log", f"bad-{name}", data)

    metrics = "".join(json.dumps({"epoch": 0, "step": i, "train_loss": 2.0 / i, "</b>": None}) + "\n" for i in range(1, 6))
    epoch = json.dumps({"epoch": 0, "step": 5, "validation_loss": 1.0, "precision": "fp32"}) + "\n"
    run = json.dumps({"settings": {"lr": 0.1, "deep": {"a": [1]}}, "environment": {"cpu": "x"}, "model": {}, "started": "today", "outcome": "finished", "seconds": 3.5, "step": 5})
    times = json.dumps({"step": 3, "seconds": 1.5, "wait_share": 0.1, "allocated": 5, "memory": {"layers.0": 100, "x": "y"}}) + "\n"
    parts = {"metrics.jsonl": metrics + epoch, "run.json": run + "\n", "timeline.jsonl": times, "trace.json": trace_text(events[:24]) + "\n"}
    write("run_record", "good-run", "".join(f"== {name}\n{data}" for name, data in parts.items()))
    write("run_record", "good-log", "== log.jsonl\n" + metrics)
    write("run_record", "good-broken", "== metrics.jsonl\nx\n[]\n{\"step\":1e400}\n{\"step\":-1}\n== run.json\n[\n== trace.json\n{\n== lens.jsonl\n{}\n== timeline.jsonl\n5\n")
    write("run_record", "good-order", "== metrics.jsonl\n" + "".join(json.dumps({"step": s, "train_loss": v}) + "\n" for s, v in [(9, 1), (2, 3.5), (9007199254740991, 1e308), (4, -1e308)]))
    write("run_record", "good-numbers", "== run.json\n" + json.dumps({"seconds": 1e308, "step": 2 ** 62, "outcome": 5}) + "\n")
    for name, data in {"nothing": "", "text": "x", "name": "== ../escape\n{}\n", "only-trace": "== trace.json\n" + trace_text([]) + "\n"}.items():
        write("run_record", f"bad-{name}", data)


# --- ranks and settings ---

FRAME_TYPES = ("hello", "challenge", "proof", "welcome", "roster", "refused", "query", "state", "failure", "verdict", "goodbye")


def network_seeds():
    def frame(kind, data=b"", magic=0x32444E42, size=None):
        number = FRAME_TYPES.index(kind) if isinstance(kind, str) else kind
        return struct.pack("<III", magic, number, len(data) if size is None else size) + data

    def proof(pid=99, port=5000, host=b"host", address=b"10.0.0.1"):
        return frame("proof", struct.pack("<ii64s16s", pid, port, host, address))

    state = struct.pack("<QBBBBiqqqdi20s", 3, 0, 1, 0, 0, 0, 10, 0, 7, 0.5, 1, b"world")
    state += bytes(-len(state) % 8)
    roster = b"h 10.0.0.1 5000 1\ng 10.0.0.2 5001 2\nh - 5002 3\n"
    streams = {"good-hello": frame("hello", bytes(88)), "good-challenge": frame("challenge", bytes(64)), "good-welcome": frame("welcome"), "good-proof": proof(),
               "good-roster": frame("roster", roster), "good-refused": frame("refused", b"no"), "good-query": frame("query"), "good-state": frame("state", state),
               "good-failure": frame("failure", b"cause"), "good-verdict": frame("verdict", b"why"), "good-goodbye": frame("goodbye"), "good-nothing": b"",
               "good-many": frame("query") * 9 + frame("state", state) + frame("goodbye"), "good-cut": proof()[:-1],
               "bad-magic": frame("query", magic=5), "bad-type": frame(11), "bad-size": frame("query", size=2 ** 32 - 1), "bad-longer": frame("query", size=2 ** 16 + 1),
               "bad-proof-size": frame("proof", b"x"), "bad-proof-pid": proof(pid=-1), "bad-proof-port": proof(port=65536), "bad-proof-host": proof(host=b"a b\n"),
               "bad-proof-end": proof(host=b"h" * 64), "bad-proof-address": proof(address=b""), "bad-state-size": frame("state", b"x"), "bad-roster-none": frame("roster"),
               "bad-state-collective": frame("state", state[:8] + b"\xff" + state[9:]), "bad-state-dtype": frame("state", state[:9] + b"\xff" + state[10:])}
    for name, data in streams.items():
        write("control_frames", name, data)

    # A byte: 1, the tag is made right; 2, the proof; 4, it comes in pieces.
    def claim(purpose=2, size=3, source=2, target=1, group=7):
        return struct.pack("<IiiiQ", purpose, size, source, target, group)

    def caller(known, who=claim(), proof=b"first", kind="proof"):
        return bytes([known]) + frame("hello", who + bytes(64)) + frame(kind, bytes(32) + proof)

    nonces = bytes(32)
    for name, data in {"good-caller": caller(3), "good-pieces": caller(7), "good-silent": caller(3, proof=b"")[:1 + 12 + 88], "good-hello": caller(1)[:1 + 12 + 88],
                       "bad-stranger": caller(0), "bad-tag": caller(2), "bad-proof": caller(1), "bad-rank": caller(3, claim(target=2)), "bad-purpose": caller(3, claim(purpose=1)),
                       "bad-kind": caller(3, kind="goodbye"), "bad-short": bytes([3]) + frame("hello", claim()), "bad-large": bytes([3]) + frame("hello", size=513),
                       "bad-proof-short": caller(3)[:1 + 12 + 88] + frame("proof", b"x")}.items():
        write("listener", name, data)
    challenge, welcome = frame("challenge", nonces + bytes(32)), frame("welcome")
    for name, data in {"good-welcome": b"\2" + challenge + welcome, "good-pieces": b"\6" + challenge + welcome, "good-silent": b"\2", "good-cut": b"\2" + challenge[:-1],
                       "bad-proof": b"\0" + challenge + welcome, "bad-refused": b"\2" + frame("refused"), "bad-early": b"\2" + welcome, "bad-twice": b"\2" + challenge + challenge,
                       "bad-short": b"\2" + frame("challenge", nonces), "bad-large": b"\2" + frame("challenge", size=513), "bad-roster": b"\2" + challenge + frame("roster", roster)}.items():
        write("connector", name, data)

    write("roster", "good-three", b"\2" + roster)
    write("roster", "good-one", b"\0h 127.0.0.1 1 0\n")
    for name, data in {"none": b"\0", "few": b"\3" + roster, "many": b"\1" + roster, "port": b"\0h - 65536 1\n", "pid": b"\0h - 1 -1\n", "cut": b"\0h - 1 1",
                       "field": b"\0h - 1\n", "letters": b"\0h - x 1\n", "spaces": b"\0h  1 1\n"}.items():
        write("roster", f"bad-{name}", data)


def settings_seeds():
    environments = {
        "good-alone": "", "good-binade": "BINADE_RANK=1\nBINADE_WORLD_SIZE=4\nBINADE_ADDRESS=127.0.0.1\nBINADE_PORT=5000\nBINADE_LISTEN=lo",
        "good-torchrun": "RANK=1\nWORLD_SIZE=4\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=h\nMASTER_PORT=29500\nTORCHELASTIC_USE_AGENT_STORE=True",
        "good-mpi": "OMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_LOCAL_RANK=0\nOMPI_COMM_WORLD_LOCAL_SIZE=1",
        "good-slurm": "SLURM_PROCID=1\nSLURM_NTASKS=4\nSLURM_LOCALID=0\nSLURM_STEP_TASKS_PER_NODE=2(x2)\nSLURM_NODEID=1\nSLURM_STEP_NODELIST=n[1-2]\nSLURM_JOB_ID=7\nSLURM_STEP_ID=0",
        "bad-rank": "BINADE_RANK=4\nBINADE_WORLD_SIZE=4\nBINADE_ADDRESS=h\nBINADE_PORT=5000", "bad-number": "BINADE_RANK=x\nBINADE_WORLD_SIZE=4",
        "bad-missing": "BINADE_RANK=1", "bad-port": "BINADE_RANK=0\nBINADE_WORLD_SIZE=1\nBINADE_ADDRESS=h\nBINADE_PORT=70000",
        "bad-local": "RANK=1\nWORLD_SIZE=4\nLOCAL_RANK=3\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=h\nMASTER_PORT=1", "bad-size": "BINADE_RANK=0\nBINADE_WORLD_SIZE=0\nBINADE_ADDRESS=h\nBINADE_PORT=5",
        "bad-zero": "RANK=1\nWORLD_SIZE=4\nLOCAL_WORLD_SIZE=0\nMASTER_ADDR=h\nMASTER_PORT=1",
        "bad-node": "SLURM_PROCID=1\nSLURM_NTASKS=4\nSLURM_LOCALID=0\nSLURM_STEP_TASKS_PER_NODE=2\nSLURM_NODEID=1\nSLURM_STEP_NODELIST=n1\nSLURM_JOB_ID=7\nSLURM_STEP_ID=0",
        "bad-lowest": "RANK=-2147483648\nWORLD_SIZE=4\nLOCAL_WORLD_SIZE=-1\nMASTER_ADDR=h\nMASTER_PORT=1",
        "bad-last-port": "RANK=0\nWORLD_SIZE=1\nMASTER_ADDR=h\nMASTER_PORT=2147483647\nTORCHELASTIC_USE_AGENT_STORE=True",
    }
    for name, data in environments.items():
        write("environment", name, data)

    def names(tasks, hosts):  # two halves of one length
        return tasks.ljust(len(hosts), "?") + hosts if len(tasks) == len(hosts) else None

    for name, data in {"good-two": names("2(x0002),3", "n[01-3],gp"), "good-range": names("1", "h"), "good-groups": names("1,1,1,1,1", "n[1]-[2,3"[:9])}.items():
        if data and not name.endswith("groups"):
            write("slurm_names", name, data)
    for name, data in {"tasks": "xh", "times": names("4(x", "abc"), "closed": names("4(x2", "abcd"), "bracket": names("1,1,1", "n[1-2"), "backwards": names("1,1,1,1", "n[3-01]"),
                       "empty": "", "many": names("1(x99999999)", "n[0-1048576]"), "comma": names("1,1", "a,,")}.items():
        write("slurm_names", f"bad-{name}", data)

    rules = {"store": "apex", "overrides": [{"op": "softmax", "dtype": "fp32"}, {"class": "norm", "module": "encoder.*", "dtype": "bf16"}]}
    write("precision_file", "good-rules", json.dumps(rules))
    write("precision_file", "good-nothing", "{}")
    formats = {"weights": "mxfp4/stochastic", "activations": "e4m3fn/delayed=16/toward-zero", "gradients": "e5m2/tensor"}
    write("precision_file", "good-formats", json.dumps({"formats": formats, "overrides": [{"op": "matmul", "module": "a.*", "sums": "f16/chunks=64"}, {"op": "softmax", "dtype": "f16"}]}))
    for name, data in {"formats": {"formats": 5}, "formats-key": {"formats": {"x": "e5m2"}}, "formats-type": {"formats": {"weights": 5}}, "formats-name": {"formats": {"weights": "e5x"}}, "formats-word": {"formats": {"weights": "e5m2/x"}},
                       "formats-blocks": {"formats": {"weights": "mxfp4/tensor"}}, "formats-history": {"formats": {"weights": "e5m2/delayed=0"}}, "sums-class": {"overrides": [{"class": "norm", "sums": "f16"}]}, "sums": {"overrides": [{"op": "matmul", "sums": "x"}]}}.items():
        write("precision_file", f"bad-{name}", json.dumps(data))
    for name, data in {"all": {"policy": "mixed-fp16", "store": "apex", "formats": formats, "overrides": [{"op": "softmax", "dtype": "fp32"}, {"class": "norm", "module": "a.*", "dtype": "bf16"}]}, "plain": {"policy": "fp32"},
                       "sums": {"policy": "fp32", "overrides": [{"op": "matmul", "module": "a.*", "sums": "f16/kahan"}]}}.items():
        write("policy", f"good-{name}", json.dumps(data))
    for name, data in {"none": {}, "policy": {"policy": 5}, "name": {"policy": "x"}, "list": []}.items():
        write("policy", f"bad-{name}", json.dumps(data))
    write("policy", "bad-text", "x")
    for name, data in {"known": "e4m3fn\ne5m2\nf16\nbf16\ne8m0", "options": "e3m4:bias=2,infinities=off,nan=top,overflow=saturate\ne4m3:subnormals=off\ne3m2:nan=none,infinities=on\ne4m3:nan=negative-zero,infinities=off",
                       "shapes": "e2m1:nan=none,infinities=off\ne5m10\ne3m0:nan=top\ne4m3:overflow=nan\ne4m3:nan=ieee,overflow=infinity"}.items():
        write("number_formats", f"good-{name}", data)
    for name, data in {"name": "x", "bits": "e9m3", "mantissa": "e4m99", "half": "e4m", "bias": "e4m3:bias=x", "bias-far": "e4m3:bias=300", "bias-range": "e8m7:bias=-126", "switch": "e4m3:subnormals=maybe", "nan": "e4m3:nan=x", "overflow": "e4m3:overflow=x",
                       "option": "e4m3:x=1", "equals": "e4m3:bias", "room": "e4m0", "small": "e1m0:nan=top,infinities=off", "scale": "e8m0:nan=ieee", "no-nan": "e4m3:nan=none,infinities=off,overflow=nan"}.items():
        write("number_formats", f"bad-{name}", data)
    for name, data in {"key": {"x": 1}, "store": {"store": "x"}, "store2": {"store": 1}, "op": {"overrides": [{"op": "x", "dtype": "fp32"}]}, "dtype": {"overrides": [{"dtype": "fp8"}]},
                       "no-dtype": {"overrides": [{"op": "softmax"}]}, "class": {"overrides": [{"class": "x", "dtype": "fp32"}]}, "array": {"overrides": 5}, "entry": {"overrides": [5]},
                       "rule": {"overrides": [{"x": "y", "dtype": "fp32"}]}, "list": [], "module": {"overrides": [{"module": 1, "dtype": "fp32"}]}}.items():
        write("precision_file", f"bad-{name}", json.dumps(data))
    write("precision_file", "bad-text", "x")
    write("precision_file", "bad-deep", '{"overrides":' + "[" * 3000)

    for name, data in {"good-names": "encoder.*.norm\nencoder.0.norm\nfp32\nfp16\nbf16\nautocast-fp16\nmixed-bf16\nhalf-fp16", "good-stars": "**.a.**\nb.a.c", "good-empty": "",
                       "bad-name": "a\nb\nfp8", "bad-policy": "a\nb\nhalf-fp32", "bad-full": "a\nb\nfull-fp16"}.items():
        write("precision_names", name, data)

    for name, data in {"good-none": "", "good-all": "--model\nmlp\n--precision\nbf16\n--epochs\n3\n--lr\n0.1\n--optimizer\nsgd\n--momentum\n0.9\n--threads=2", "good-scale": "--loss-scale\n1024\n--at-floor\nclip",
                       "good-store": "--store\npaper", "bad-flag": "--nope", "bad-model": "--model\nx", "bad-lr": "--lr\nnan", "bad-batch": "--batch\n0", "bad-momentum": "--momentum\n0.5",
                       "bad-scale": "--loss-scale\nx", "bad-device": "--device\nx", "bad-policy": "--policy\nhalf\n--precision\nfp32", "bad-path": "--data\n", "bad-epochs": "--epochs\n99999999999999999999",
                       "bad-resume": "--resume", "bad-word": "word", "bad-workers": "--workers\n-1"}.items():
        write("flags", name, data)

    measured = {"kernel": "add", "rows": 3, "cols": 5, "dtype": "f32", "device": "cpu", "provider": "", "samples_seconds": [1e-6, 2.5e-6]}
    record = {"binade_bench": 1, "cases": [measured, {"kernel": "gemm", "error": "wrong"}]}
    write("bench_record", "good-two", json.dumps(record))
    write("bench_record", "good-nothing", json.dumps(record | {"cases": []}))
    for name, change in {"rows": {"rows": 0}, "large": {"rows": 1e99}, "dtype": {"dtype": "i64"}, "kernel": {"kernel": 5}, "none": {"samples_seconds": []},
                         "negative": {"samples_seconds": [-1]}, "text": {"samples_seconds": ["x"]}, "object": {"samples_seconds": {}}, "device": {"device": None}}.items():
        write("bench_record", f"bad-{name}", json.dumps(record | {"cases": [measured | change]}))
    for name, change in {"version": {"binade_bench": 2}, "cases": {"cases": 5}, "case": {"cases": [5]}}.items():
        write("bench_record", f"bad-{name}", json.dumps(record | change))
    machine = {"commit": "0123", "build": "Release", "cpu": "x", "cores": 2, "threads": 2, "isa": "avx2", "device": "cpu"}
    write("bench_record", "good-machine", json.dumps(record | {"machine": machine, "cache": "warm: x"}))
    for name, change in {"machine": {"machine": []}, "fact": {"machine": {"cpu": 1}}, "threads": {"machine": {"threads": 3e9}}, "cache": {"cache": 5}}.items():
        write("bench_record", f"bad-{name}", json.dumps(record | change))
    write("bench_record", "bad-deep", "[" * 3000)
    write("bench_record", "bad-nothing", "")

    lines = {"good-doctor": "doctor --security --run r", "good-format": "format e4m3 1.5 --value=-3 --rounding stochastic --random 5", "good-format-decode": "format f16 --decode 5", "bad-format-random": "format f16 1 --random 5", "bad-format-rounding": "format f16 --rounding toward-zero",
             "good-bench": "bench add:3x5 --dtype f32,f16 --warm --json f", "good-bench-diff": "bench diff a b --case add --rounds 9", "bad-bench": "bench diff a", "good-kernel": "kernel k.cu --case softmax:4x5 --json j --page p --strict --watch", "bad-kernel": "kernel k.cu", "good-lens": "lens r --html p", "good-launch": "launch -n 4 --grace 2.5 --link-delay 0.5,100 p -n 5 -- x", "good-tail": "launch -- -p",
             "good-slurm": "slurm submit --nodes 2 --gpus 4 --tasks 0 --cpus 1 --name n --time 2:00:00 --partition a --array 0-9%2 --output o --requeue 60 --sbatch=--mem=64G --dry-run -- p {array}",
             "good-ring-lens": "ring-lens --ranks 2,8 --elements 64 --deviation 1e-3 --seed 5 --json", "good-file": "ring-lens file name", "good-checksum": "checksum d --verify",
             "good-update": "checksum d --update", "good-pack": "pack d out --resize 8x9 --jpeg --quality 90", "bad-pack": "pack d", "bad-pack-size": "pack d o --resize x", "good-inspect": "inspect f --verify", "good-decode": "decode f --out o", "good-verify-dataset": "verify-dataset d --json --report r --seed 3", "bad-decode": "decode f --facts --out o", "bad-dataset": "verify-dataset", "good-report": "report a b --html p", "good-diff": "diff a b", "good-runs": "runs", "good-watch": "watch r --interval 0.5 --once", "good-trace": "trace r --flame f --rows 5", "good-bottleneck": "bottleneck --steps 5 p -n 5", "good-replay": "replay r --policy static:1024 --policy dynamic:interval=9", "good-blackbox": "blackbox f --device cpu --threads 2", "bad-policy": "replay r --policy nope", "good-dashes": "inspect -- --verify", "good-op-classes": "op-classes", "good-help": "--help", "good-help2": "slurm submit -h",
             "good-version": "--version", "bad-nothing": "", "bad-command": "nope", "bad-flag": "doctor --nope", "bad-twice": "doctor --security --security", "bad-twice2": "launch -n 2 -n 3 p",
             "bad-missing": "launch -n", "bad-range": "launch -n 0 p", "bad-large": "launch -n 99999999999999999999 p", "bad-program": "launch -n 2", "bad-program2": "launch --nope 2 p", "bad-slurm": "slurm",
             "bad-plain": "slurm submit --name a;b p", "bad-nan": "ring-lens --deviation nan", "bad-seed": "ring-lens --seed -1", "bad-name": "ring-lens file", "bad-drawn": "ring-lens file name --elements 5",
             "bad-both": "checksum d --verify --update", "bad-run": "doctor --run r", "bad-terminator": "doctor ++", "bad-escape": "\x1b[2J\n", "bad-more": "op-classes x", "bad-delay": "launch --link-delay x p"}
    for name, line in lines.items():
        write("command_line", name, "".join(word + "\0" for word in line.split(" ") if line))
    write("command_line", "bad-empty", "lens\0\0")


# --- packed stores, tar files, CIFAR ---

def store_manifest(*lines, end=None, samples=None):
    text = "".join(line + "\n" for line in ("binade-store 1 crc32c",) + lines)
    count = sum(int(line.split()[2]) for line in lines if line.startswith("shard")) if samples is None else samples
    return text + (end or f"end {count} {crc32c(text.encode()):08x}") + "\n"


def store_part(kind, dtype, sizes, data, name=b"", width=0):
    return (struct.pack("<BBBBIQ", kind, dtype, width, len(sizes), len(name), len(data)) +
            struct.pack(f"<{len(sizes)}q", *sizes) + name + data)


def store_sample(*parts, origin=b"a/1.png", count=None):
    return struct.pack("<II", len(parts) if count is None else count, len(origin)) + origin + b"".join(parts)


def tar_member(name, data, kind=b"0", size=None, magic=b"ustar\0", prefix=b""):
    header = bytearray(512)
    header[345:345 + len(prefix)] = prefix
    header[:len(name)] = name
    header[124:135] = size or b"%011o" % len(data)
    header[156:157] = kind
    header[257:263] = magic
    header[148:156] = b" " * 8
    header[148:155] = b"%06o\0" % sum(header)
    return bytes(header) + data + bytes(-len(data) % 512)


def store_seeds():
    head = ("channels 3", "encoded 0", "classes 2")
    shard = "shard 4096 2 0123abcd"
    good = {"names": store_manifest(*head, "class cat", "class d\\x5cog", shard, "shard 80 1 00000000"),
            "none": store_manifest(*head, shard), "rows": store_manifest("channels -1", "encoded 1", "classes 0", shard)}
    bad = {"channels": store_manifest("chanels 3", "encoded 0", "classes 2", shard), "empty": "", "cut": good["names"][:60], "crc": good["none"].replace("cat", "rat").replace("4096", "4104"),
           "names": store_manifest(*head, "class cat", shard), "order": store_manifest(*head, shard, "class a", "class b"),
           "small": store_manifest(*head, "shard 40 1 00000000"), "many": store_manifest(*head, "shard 4096 9999999 00000000"),
           "size": store_manifest(*head, "shard 99999999999999999999 1 00000000"), "word": store_manifest(*head, "x"),
           "count": store_manifest(*head, shard, samples=3), "odd": store_manifest(*head, "shard 4097 2 0123abcd"), "after": good["none"] + "x\n"}
    for kind, files in (("good", good), ("bad", bad)):
        for name, data in files.items():
            write("store_manifest", f"{kind}-{name}", data)

    image = store_part(0, 6, (2, 3, 3), bytes(range(18)))
    ids = store_part(3, 4, (3,), struct.pack("<3H", 1, 500, 65535), b"ids", 2)
    good = {"image": store_sample(image), "file": store_sample(store_part(1, 6, (), b"\xff\xd8\xff")), "fields": store_sample(image, ids,
            store_part(3, 7, (2,), b"\1\0", b"flags"), store_part(4, 6, (2, 3, 1), bytes(6), b"mask")),
            "values": store_sample(store_part(2, 1, (2,), bytes(8)), origin=b""), "empty": store_sample(store_part(3, 1, (0, 2 ** 62), b"", b"x"))}
    bad = {"cut": store_sample(image)[:-1], "after": store_sample(image) + b"x", "kind": store_sample(store_part(9, 6, (1, 1, 1), b"x")),
           "dtype": store_sample(store_part(3, 99, (1,), b"x", b"x")), "rank": store_sample(store_part(3, 6, (1,) * 9, b"x", b"x")),
           "sizes": store_sample(store_part(0, 6, (2, 3, 3), bytes(17))), "overflow": store_sample(store_part(3, 6, (2 ** 32, 2 ** 32), b"", b"x")),
           "negative": store_sample(store_part(0, 6, (-1, -1, 1), b"x")), "width": store_sample(store_part(3, 4, (1,), b"xxx", b"x", 3)),
           "bool": store_sample(store_part(3, 7, (1,), b"\2", b"x")), "second": store_sample(ids, image), "parts": store_sample(image, count=2 ** 32 - 1),
           "origin": struct.pack("<II", 0, 2 ** 31), "name": store_sample(struct.pack("<BBBBIQ", 3, 6, 0, 0, 2 ** 31, 0))}
    for kind, files in (("good", good), ("bad", bad)):
        for name, data in files.items():
            write("store_sample", f"{kind}-{name}", data)

    end = bytes(1024)
    pair = tar_member(b"a/1.jpg", b"x" * 600) + tar_member(b"a/1.cls", b"3")
    pax = b"19 path=long/1.jpg\n"
    good = {"prefix": tar_member(b"1.jpg", b"x", prefix=b"folder") + end, "pair": pair + end, "no-end": pair, "folder": tar_member(b"a/", b"", b"5") + pair + end, "empty": end,
            "long": tar_member(b"l", b"b/" * 80 + b"1.jpg\0", b"L") + pair + end, "pax": tar_member(b"p", pax, b"x") + pair + end,
            "base256": tar_member(b"1.jpg", b"abc", size=b"\x80" + bytes(9) + b"\x03") + end, "link": tar_member(b"l", b"", b"2") + end}
    bad = {"base256-large": tar_member(b"1.jpg", b"", size=b"\x80" + b"\1" + bytes(9)), "cut": pair[:700], "header": pair[:100], "sum": b"b" + pair[1:], "after": pair + end + pair, "large": tar_member(b"a", b"", size=b"77777777777"),
           "negative": tar_member(b"a", b"", size=b"\xff" * 11), "digits": tar_member(b"a", b"", size=b"9" * 11), "sparse": tar_member(b"a", b"", b"S") + end,
           "pax": tar_member(b"p", b"99 path=x\n", b"x") + pair, "pax-size": tar_member(b"p", b"12 size=-12\n", b"x") + pair,
           "pax-end": tar_member(b"p", pax, b"x"), "huge-pax": tar_member(b"p", b"", b"x", size=b"00010000000")}
    for kind, files in (("good", good), ("bad", bad)):
        for name, data in files.items():
            write("tar", f"{kind}-{name}", data)

    record = bytes([7]) + bytes(3072)
    write("cifar", "good-hundred", b"\0\1" + bytes(3072) + b"== names\napple\nfish \r\n\n")
    write("cifar", "good-hundred-unnamed", b"\0\1" + bytes(3072) + b"== names\n")
    write("cifar", "bad-hundred-label", b"\0\5" + bytes(3072) + b"== names\napple\nfish\n")
    for name, data in {"good-one": record, "good-two": record * 2, "bad-empty": b"", "bad-cut": record[:-1], "bad-more": record + b"x"}.items():
        write("cifar", name, data)


# --- CUDA C++ ---

PARAMETERS = "const float* a, double* b, __half* c, __nv_bfloat16* d, int e, unsigned f, long long g, size_t* h, uint8_t i, signed char j, struct int32_t* __restrict__ k"
KERNEL = """__global__ void k(const float* x, float* y, int n) {
  __shared__ float a[4][5], *p[2];
  extern __shared__ alignas(16) unsigned char raw[];
  a[0][threadIdx.x % 5] = x[0];
  y[0] = a[0][0] + (x[1] < n ? 1 : 2);
}
"""
SOLVE = 'extern "C" void solve(const float* x, float* y, int n, cudaStream_t s) { k<<<dim3(1, 2), 32, 8, s>>>(x, y, n); }\n'


def cuda_seeds():
    write("cuda_source", "good-kernel", KERNEL + SOLVE)
    write("cuda_source", "good-template", "template <class T, int n> __global__ void k(T* y) { y[n] = R\"(<<<)\"[0]; }\n"
          'extern "C" { void solve(float* y) { k<float, 1 + (2 > 1)><<<1, 1>>>(y); } }')
    write("cuda_source", "bad-unclosed", KERNEL + 'extern "C" void solve(float* y) { k<<<1, (2>>>(y); }')
    write("cuda_source", "bad-assembly", 'extern "C" void solve(float* y) { asm("nop"); }')
    write("cuda_source", "bad-shared", "__global__ void k() { __shared__ struct { int a; } s; }" + SOLVE)
    write("cuda_source", "bad-entry", "void solve(float* y) {}")
    solve = 'extern "C" void solve(float* y) { k<<<1, 2>>>(y); }\n'
    for name, data in {
            "parameters": f'extern "C" void solve({PARAMETERS}) {{}}\nint main() {{ return 0; }}', "nothing": 'extern "C" void solve() { n::k<<<1, 2>>>(); ::k<<<1, 2>>>(); }',
            "block": 'extern "C" { struct S { int a; }; void f() { { int b = 0x1e+2; } } void solve(float* y) {} }', "comments": "// a \\\nb\n/* c */ #define D \\\n 1 // e\n#define E(x) x /* f */\n" + solve,
            "declared": '__device__ int x; __device__ __host__ int f() { return 1; } __host__ __device__ int g(); __device__ int h(int a[3]) { return a[0]; }\n' + solve,
            "shared-outside": 'extern __shared__ float raw[];\n__global__ void k(float* y) { y[0] = raw[0]; }\n' + solve, "alignas": '__global__ void k() { alignas(16) static __shared__ const std::array<int, 3> a; __align__(8) __shared__ int *p, b[2][3]; }\n' + solve,
            "subscripts": 'extern "C" void solve(float* y) {\n  s.t[1][2] = a->b[3] + n::c[d[0]] + f(1)[2] + [&](int i) { return i; }(0);\n  e[5] = 1;\n}\n', "text": 'extern "C" void solve(float* y) { k<a(">"), \'\\\'\'><<<dim3(1, 2), f<1, 2>(3), 0, s>>>(y); const char* t = "<<<\\""; const char* r = R"x(a)x"; }',
            "noinline": '#include <vector>\n#include "no.h"\n#include "cuda_runtime.h"\n#include x\n#pragma once\n__noinline__ void f() noexcept { } \n' + solve, "reference": 'extern "C" void reference(const float* x, float* y) {}\n' + solve,
            "string-name": 'extern "C" void solve(float* y) { k<"\\"\n><<<1, 2>>>(y); }'}.items():
        write("cuda_source", f"good-{name}", data)
    for name, data in {
            "unnamed": 'extern "C" void solve(float*, int) {}', "type": 'extern "C" void solve(std::string s) {}', "pointers": 'extern "C" void solve(float** s) {}', "twice": solve + solve, "none": "int x;", "zero": "int x;\0",
            "reference-linkage": "void reference(float* y) {}\n" + solve, "by-kernel": "__global__ void k() { k<<<1, 1>>>(); }" + solve, "first": "<<<1, 2>>>(x);", "no-name": 'extern "C" void solve(float* y) { 5<<<1, 2>>>(y); }',
            "no-template": 'extern "C" void solve(float* y) { ><<<1, 2>>>(y); }', "one": 'extern "C" void solve(float* y) { k<<<1>>>(y); }', "five": 'extern "C" void solve(float* y) { k<<<1, 2, 3, 4, 5>>>(y); }',
            "semicolon": 'extern "C" void solve(float* y) { k<<<1, 2; }', "macro": "#define K k<<<1, 2>>>(y)\n" + solve, "macro-shared": "#define S __shared__ int\n" + solve, "library": 'extern "C" void solve(float* y) { thrust::fill(y); }',
            "header": "#include <cub.h>\n" + solve, "raw": 'const char* t = R"x', "shared-value": "__global__ void k() { __shared__ int a = 5; }" + solve, "shared-alignas": "__global__ void k() { __shared__ alignas int a; }" + solve,
            "shared-nothing": "__global__ void k() { __shared__; }" + solve, "shared-odd": "__global__ void k() { __shared__ int a[2], 5; }" + solve, "shared-after": "__global__ void k() { __shared__ int a[2] 5; }" + solve,
            "shared-open": "__global__ void k() { __shared__ int a[]; }" + solve, "shared-closed": "__global__ void k() { extern __shared__ int a[3]; }" + solve, "shared-outside": "__shared__ int a[3];\n" + solve,
            "scope": 'extern "C" void solve(float* y) { 5::k<<<1, 2>>>(y); 5<<<1, 2>>>(y); }'}.items():
        write("cuda_source", f"bad-{name}", data)


def kernel_case_seeds():
    x = {"name": "x", "role": "input", "extents": ["rows", "2*cols+1"], "range": "1.5", "large": "9"}
    y = {"name": "y", "role": "output", "domain": "whole", "extents": ["rows"]}
    case = {"name": "c", "summary": "s", "sizes": ["rows", "cols"], "shapes": ["1x1", "3x7"], "inputs": ["normal", "-inf"], "arrays": [x, y],
            "scalars": [{"name": "alpha", "value": "-0.5"}], "reference": "r.cpp", "units": 4, "flops": "2*rows*cols"}
    write("kernel_case", "good-all", json.dumps(case))
    write("kernel_case", "good-short", json.dumps({key: case[key] for key in ("sizes", "shapes", "inputs", "arrays", "reference")}))
    for name, change in {"shape": {"shapes": ["1"]}, "shapes": {"shapes": []}, "large": {"shapes": ["99999999x99999999"]}, "inputs": {"inputs": ["odd"]},
                         "output": {"arrays": [x]}, "extent": {"arrays": [x, y | {"extents": ["depth"]}]}, "zero": {"arrays": [x, y | {"extents": ["0*rows"]}]},
                         "overflow": {"arrays": [x, y | {"extents": ["9223372036854775807*rows*cols+1"]}]}, "name": {"arrays": [x | {"name": "a b"}, y]},
                         "twice": {"arrays": [x, y | {"name": "x"}]}, "size": {"sizes": ["rows", "x"]}, "role": {"arrays": [x, y | {"role": "both"}]},
                         "number": {"scalars": [{"name": "alpha", "value": "nan"}]}, "key": {"more": 1}, "reference": {"reference": ""},
                         "flops": {"flops": "rows*"}, "units": {"units": "4"}, "array": {"arrays": {}}, "array-item": {"arrays": [5]}, "array-key": {"arrays": [x | {"more": "1"}, y]}, "scalar-key": {"scalars": [{"name": "a", "more": "1"}]}, "shape-item": {"shapes": [5]}}.items():
        write("kernel_case", f"bad-{name}", json.dumps(case | change))
    write("kernel_case", "bad-end", json.dumps(case) + "]")
    write("kernel_case", "bad-empty", "")


def main():
    pngs = png_seeds()
    bmp_seeds()
    pnm_seeds()
    tga_seeds()
    gif_seeds()
    webp_seeds()
    jpeg_seeds()
    image_seeds(pngs)
    data_seeds()
    store_seeds()
    json_seeds()
    safetensors_seeds()
    run_seeds()
    instrument_seeds()
    network_seeds()
    settings_seeds()
    cuda_seeds()
    kernel_case_seeds()


main()
