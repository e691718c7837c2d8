#!/usr/bin/env python3
"""An encrypted convolution layer over an image: encrypted by one party, convolved by another, decrypted by the first.

    cargo build --release --bin blindcore
    python3 examples/convolution/run.py                 # testdata/images/harbour.png, 8 filters of 3 x 3, int8
    python3 examples/convolution/run.py --bits 3072 --out target/convolution.png

Three runs of `blindcore sum`, as on three machines: the client encrypts with the public key; the server, which has the
weights, convolves what it can't read; the client decrypts. The result is compared with the same convolution of the plain
image, and every stage is timed as in PH-EPU's Fig. 15.4.5 (client, server, client). Python's standard library alone.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Classic filters of three by three on the brightness, whole numbers of 8 bits.
FILTERS = {
    "edges, vertical": [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    "edges, horizontal": [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
    "blur": [[1, 2, 1], [2, 4, 2], [1, 2, 1]],
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "Laplace": [[1, 1, 1], [1, -8, 1], [1, 1, 1]],
    "emboss": [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]],
    "diagonal": [[2, 1, 0], [1, 0, -1], [0, -1, -2]],
    "mean": [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
}
# How much of a colour is brightness (Rec. 601, in eighths: exact in int8).
CHANNELS = [2, 5, 1]


def read_png(path):
    """An 8-bit grey or RGB image, with or without transparency, not interlaced, as rows of RGB pixels."""
    try:
        data = path.read_bytes()
    except OSError as error:
        sys.exit(f"{path} can't be read: {error.strerror}")
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        sys.exit(f"{path} is not a PNG")
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            channels = {0: 1, 2: 3, 4: 2, 6: 4}.get(colour)
            if depth != 8 or channels is None or interlaced:
                sys.exit(f"{path} is not 8-bit grey or RGB, or is interlaced; save it as plain RGB")
            if width * height > 1 << 16:
                sys.exit(f"{path} has {width} x {height} pixels; at most 65,536 are taken here: make it smaller")
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    step = channels * width + 1
    raw, rows, before = zlib.decompress(packed), [], bytearray(channels * width)
    for y in range(height):
        kind, line = raw[y * step], bytearray(raw[y * step + 1 : (y + 1) * step])
        for i in range(len(line)):
            left, above = line[i - channels] if i >= channels else 0, before[i]
            corner = before[i - channels] if i >= channels else 0
            # Paeth: whichever of the three is nearest to left + above - corner.
            nearest = min((left, above, corner), key=lambda v: abs(left + above - corner - v))
            line[i] = (line[i] + (0, left, above, (left + above) // 2, nearest)[kind]) & 255
        pixels = (line[channels * x : channels * (x + 1)] for x in range(width))
        rows.append([tuple(p[:3]) if channels >= 3 else (p[0],) * 3 for p in pixels])
        before = line
    return rows


def write_png(path, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    )


def write_npy(path, shape, values):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    body = struct.pack(f"<{len(values)}q", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body)


def blindcore(binary, *args):
    """Runs a command; its document, and the seconds that it took in all."""
    start = time.monotonic()
    done = subprocess.run([binary, "sum", *map(str, args), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout), time.monotonic() - start


def convolve(image, kernels, height, width):
    """The same layer in the clear, padded by one: outputs x height x width."""
    out = []
    for kernel in kernels:
        for y in range(height):
            for x in range(width):
                total = 0
                for c, plane in enumerate(kernel):
                    for i, row in enumerate(plane):
                        for j, weight in enumerate(row):
                            v, u = y + i - 1, x + j - 1
                            if 0 <= v < height and 0 <= u < width:
                                total += weight * image[c][v][u]
                out.append(total)
    return out


def picture(rows, maps, height, width, stages):
    """The image, its maps in grey, and a bar for each stage, as rows of pixels three times as large."""
    scale, gap = 3, 4
    across = 3
    tiles = [[list(row) for row in rows]]
    for at in range(len(FILTERS)):
        values = maps[at * height * width : (at + 1) * height * width]
        low, high = min(values), max(values)
        grey = [round(255 * (v - low) / max(high - low, 1)) for v in values]
        tiles.append([[(g, g, g) for g in grey[y * width : (y + 1) * width]] for y in range(height)])
    total_width = across * (width * scale + gap) + gap
    canvas = []
    for first in range(0, len(tiles), across):
        canvas += [[(255, 255, 255)] * total_width for _ in range(gap)]
        for y in range(height * scale):
            line = [(255, 255, 255)] * gap
            for tile in tiles[first : first + across]:
                for pixel in tile[y // scale]:
                    line += [pixel] * scale
                line += [(255, 255, 255)] * gap
            canvas.append(line + [(255, 255, 255)] * (total_width - len(line)))
    longest = max(stages.values())
    for colour, seconds in zip([(66, 106, 172), (201, 114, 51), (66, 106, 172)], stages.values()):
        canvas += [[(255, 255, 255)] * total_width for _ in range(2 * gap)]
        length = max(2, round((total_width - 2 * gap) * seconds / longest))
        for _ in range(4 * gap):
            bar = [(255, 255, 255)] * gap + [colour] * length
            canvas.append((bar + [(255, 255, 255)] * total_width)[:total_width])
    canvas += [[(255, 255, 255)] * total_width for _ in range(2 * gap)]
    return canvas


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blindcore", default=ROOT / "target/release/blindcore", help="the binary")
    parser.add_argument("--image", type=pathlib.Path, default=ROOT / "testdata/images/harbour.png", help="an 8-bit PNG")
    parser.add_argument("--bits", type=int, default=2048, help="length of the key")
    parser.add_argument("--out", type=pathlib.Path, help="draw the maps and the stages into this PNG")
    args = parser.parse_args()

    rows = read_png(args.image)
    height, width = len(rows), len(rows[0])
    image = [[[pixel[c] for pixel in row] for row in rows] for c in range(3)]
    kernels = [[[[c * w for w in line] for line in f] for c in CHANNELS] for f in FILTERS.values()]

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_npy(folder / "image.npy", (3, height, width), [v for plane in image for row in plane for v in row])
        flat = [v for kernel in kernels for plane in kernel for row in plane for v in row]
        write_npy(folder / "kernels.npy", (len(kernels), 3, 3, 3), flat)

        blindcore(args.blindcore, "keygen", "--bits", args.bits, "--out", folder / "client.key")
        blindcore(args.blindcore, "public", "--key", folder / "client.key", "--out", folder / "server.pub")
        print(f"{args.image.name}: 3 x {height} x {width} numbers of 8 bits; a key of {args.bits} bits")

        made, encrypt = blindcore(
            args.blindcore, "encrypt", "--key", folder / "server.pub", "--in", folder / "image.npy",
            "--out", folder / "image.ct", "--bits", 9,
        )
        print(f"client   encrypts   {encrypt:6.2f} s   {made['ciphertexts']:,} ciphertexts, {made['bytes'] / 2**20:.1f} MiB to the server")
        maps, server = blindcore(
            args.blindcore, "conv", "--key", folder / "server.pub", "--in", folder / "image.ct",
            "--weights", folder / "kernels.npy", "--padding", 1, "--out", folder / "maps.ct",
        )
        print(
            f"server   convolves  {server:6.2f} s   {len(kernels)} filters of 3 x 3 x 3, int8: {maps['ciphertexts']:,} results,"
            f" {maps['bytes'] / 2**20:.1f} MiB back; evaluating {maps['ms']['evaluate'] / 1e3:.2f} s,"
            f" rerandomising {maps['ms']['rerandomise'] / 1e3:.2f} s"
        )
        result, decrypt = blindcore(args.blindcore, "decrypt", "--key", folder / "client.key", "--in", folder / "maps.ct")
        print(f"client   decrypts   {decrypt:6.2f} s")

    want = convolve(image, kernels, height, width)
    if result["values"] != want:
        sys.exit("the decrypted maps are NOT those of the plain image")
    print(f"all {len(want):,} numbers are those of the same convolution in the clear")
    if args.out:
        stages = {"client": encrypt, "server": server, "client again": decrypt}
        write_png(args.out, picture(rows, want, height, width, stages))
        print(f"picture: {args.out.name}: the image, its {len(kernels)} maps ({', '.join(FILTERS)}), and a bar for each stage")


if __name__ == "__main__":
    main()
