#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_cases.py: writes the cases named ref_*, forms that no recorded case has.

Their outputs are computed here, from the rule of the operation written out once
more in Python; floats are rounded after every operation, as f32 is.
"""

import json
import math
import os
import random
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
CODES = {
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "bool": "?",
    "uint8": "B",
    "bfloat16": "H",
    "float8_e4m3fn": "B",
}
SENTINEL = {"int32": 0xABABABAB - (1 << 32), "int64": -0x5454545454545455}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def bf16(x):
    """The bits of x, to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def of_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def e4m3_value(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 0:
        return math.ldexp(mantissa, -9)
    return math.ldexp(8 + mantissa, exponent - 10)


def e2m1(x):
    """The code nearest to x, of even mantissa on a tie."""
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    best = min(range(8), key=lambda c: (abs(values[c] - abs(x)), c & 1))
    return best | (8 if math.copysign(1, x) < 0 else 0)


def exponent_up(x):
    """Of the power of two next to x, upwards."""
    mantissa, exponent = math.frexp(x)
    return exponent - (mantissa == 0.5)


def e4m3(x):
    """The code nearest to x, of even mantissa on a tie."""
    best = min(range(127), key=lambda c: (abs(e4m3_value(c) - abs(x)), c & 1))
    return best | (128 if math.copysign(1, x) < 0 else 0)


class Case:
    def __init__(self, op, name, **params):
        self.dir = os.path.join(HERE, op, name)
        os.makedirs(self.dir, exist_ok=True)
        self.manifest = {
            "format": 1,
            "op": op,
            "case": name,
            "params": params,
            "source": "make_cases.py",
            "sentinel_byte": 171,
            "tensors": [],
        }

    def _write(self, file, dtype, values):
        data = struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)
        with open(os.path.join(self.dir, file), "wb") as f:
            f.write(data)
        return file

    def tensor(self, name, dtype, shape, values, strides=None, **how):
        """role: input; with compare: output; with before too: inout."""
        if strides is None:
            strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        t = {
            "name": name,
            "dtype": dtype,
            "shape": shape,
            "strides": strides,
            "file_elems": len(values),
            "storage_offset": 0,
        }
        if "before" in how:
            t["role"] = "inout"
            t["file_before"] = self._write(name + ".before.bin", dtype, how["before"])
            t["file_after"] = self._write(name + ".after.bin", dtype, values)
        else:
            t["role"] = "output" if "compare" in how else "input"
            t["file"] = self._write(name + ".bin", dtype, values)
        if "compare" in how:
            t["compare"] = how["compare"]
        self.manifest["tensors"].append(t)

    def done(self):
        with open(os.path.join(self.dir, "manifest.json"), "w") as f:
            json.dump(self.manifest, f, indent=1)
            f.write("\n")


def window_metadata(name, queries, lens, decodes, rows):
    """Windows of 32 keys, pages of 16. `rows`: prefill has rows of its own."""
    window, page, columns = 32, 16, 8
    rng = random.Random(name)
    starts = [sum(queries[:b]) for b in range(len(queries) + 1)]
    table = [rng.randrange(1000) for _ in range(columns * len(lens))]
    c = Case("swa_metadata", name, window=window, bs=page, decodes=decodes)
    requests, indices, sizes = [], [], []
    for b, (n, length) in enumerate(zip(queries, lens)):
        for pos in range(length - n, length):
            start = max(pos - window + 1, 0)
            row = [
                table[b * columns + k // page] * page + k % page
                for k in range(start, pos + 1)
            ]
            requests.append(b)
            sizes.append(len(row))
            indices += row + [-1] * (window - len(row))
    c.tensor("query_start_loc", "int32", [len(starts)], starts)
    c.tensor("seq_lens", "int32", [len(lens)], lens)
    c.tensor("block_table", "int32", [len(lens), columns], table)
    c.tensor("slot_mapping", "int64", [starts[-1]], list(range(starts[-1])))
    exact = {"compare": "exact"}
    n = starts[decodes]
    c.tensor("token_to_req_indices", "int32", [starts[-1]], requests, **exact)
    c.tensor(
        "decode_swa_indices", "int32", [n, 1, window], indices[: n * window], **exact
    )
    c.tensor("decode_swa_lens", "int32", [n], sizes[:n], **exact)
    if rows:
        m = starts[-1] - n
        c.tensor(
            "prefill_swa_indices",
            "int32",
            [m, 1, window],
            indices[n * window :],
            **exact,
        )
        c.tensor("prefill_swa_lens", "int32", [m], sizes[n:], **exact)
    if decodes < len(lens):
        gather = [
            q + min(length - q, window - 1)
            for q, length in list(zip(queries, lens))[decodes:]
        ]
        c.tensor("prefill_gather_lens", "int32", [len(gather)], gather, **exact)
    c.done()


def index_stride(name):
    """Pages of 64 rows, 80 rows apart."""
    page, stride, columns, topk = 64, 80, 3, 128
    rng = random.Random(name)
    req = [1, 0, 1]
    table = [rng.randrange(500) for _ in range(2 * columns)]
    indices = [rng.randrange(-1, page * columns) for _ in range(len(req) * topk)]
    out = [
        -1
        if i < 0
        else table[req[n // topk] * columns + i // page] * stride + i % page
        for n, i in enumerate(indices)
    ]
    c = Case(
        "convert_req_index_newest", name, BLOCK_SIZE=page, BLOCK_STRIDE_ROWS=stride
    )
    c.tensor("req_id", "int32", [len(req)], req)
    c.tensor("block_table", "int32", [2, columns], table)
    c.tensor("token_indices", "int32", [len(req), topk], indices)
    c.tensor("out", "int32", [len(req), topk], out, compare="exact")
    c.done()


def states(name, dtype):
    """kv and score in bf16; states of ratio 4 in f32 or bf16."""
    width, tokens, pages, entries = 1024, 3, 3, 4
    rng = random.Random(name)
    kv, score = (
        [bf16(rng.uniform(-4, 4)) for _ in range(tokens * width)] for _ in range(2)
    )
    ape = [f32(rng.uniform(-1, 1)) for _ in range(4 * width)]
    positions, slots = [130, 7, 255], [9, -1, 2]
    before = [f32(rng.uniform(-1, 1)) for _ in range(pages * entries * 2 * width)]
    if dtype == "bfloat16":
        before = [bf16(x) for x in before]
    after = list(before)
    for t, slot in enumerate(slots):
        for i in range(width if slot >= 0 else 0):
            k = of_bf16(kv[t * width + i])
            s = of_bf16(score[t * width + i])
            s = f32(s + ape[positions[t] % 4 * width + i])
            at = slot * 2 * width + i
            after[at] = k if dtype == "float32" else bf16(k)
            after[at + width] = s if dtype == "float32" else bf16(s)
    c = Case("save_partial_states", name, cr=4)
    c.tensor("kv", "bfloat16", [tokens, width], kv)
    c.tensor("score", "bfloat16", [tokens, width], score)
    c.tensor("ape", "float32", [4, width], ape)
    c.tensor("positions", "int64", [tokens], positions)
    c.tensor("slot_mapping", "int64", [tokens], slots)
    c.tensor(
        "state_cache",
        dtype,
        [pages, entries, 2 * width],
        after,
        before=before,
        compare="exact",
    )
    c.done()


def turns_of(rows):
    """A table of rotations, in bf16."""
    return [
        bf16(math.cos(p / 7 * (i + 1)) if i < 32 else math.sin(p / 7 * (i - 31)))
        for p in range(rows)
        for i in range(64)
    ]


def rotate(x, table, pos):
    """The last 64 of x by row pos of a table in bf16."""
    at = len(x) - 64
    turn = [of_bf16(b) for b in table[pos * 64 : pos * 64 + 64]]
    for i in range(32):
        first, second = x[at + 2 * i], x[at + 1 + 2 * i]
        cos, sin = turn[i], turn[32 + i]
        x[at + 2 * i] = f32(f32(first * cos) - f32(second * sin))
        x[at + 1 + 2 * i] = f32(f32(second * cos) + f32(first * sin))


def index_queries(name):
    """A table of rotations in bf16, positions of int32."""
    tokens, heads, rows, softmax_scale, head_scale = 3, 4, 5, 128**-0.5, 0.5
    rng = random.Random(name)
    q = [bf16(rng.uniform(-3, 3)) for _ in range(tokens * heads * 128)]
    weights = [f32(rng.uniform(-1, 1)) for _ in range(tokens * heads)]
    table, positions = turns_of(rows), [4, 0, 2]
    codes, weights_out = [], []
    for n in range(tokens * heads):
        x = [of_bf16(b) for b in q[128 * n : 128 * n + 128]]
        rotate(x, table, positions[n // heads])
        x = [of_bf16(bf16(v)) for v in x]
        e = exponent_up(f32(max(1e-4, *map(abs, x)) / 448))
        codes += [e4m3(math.ldexp(v, -e)) for v in x]
        w = f32(f32(math.ldexp(weights[n], e)) * f32(softmax_scale))
        weights_out.append(f32(w * f32(head_scale)))
    c = Case(
        "fused_indexer_q_fp8", name, softmax_scale=softmax_scale, head_scale=head_scale
    )
    c.tensor("positions", "int32", [tokens], positions)
    c.tensor("index_q", "bfloat16", [tokens, heads, 128], q)
    c.tensor("index_q_cos_sin_cache", "bfloat16", [rows, 64], table)
    c.tensor("index_weights", "float32", [tokens, heads], weights)
    c.tensor("q_fp8", "float8_e4m3fn", [tokens, heads, 128], codes, compare="exact")
    c.tensor("weights_out", "float32", [tokens, heads], weights_out, compare="exact")
    c.done()


def front_end(name):
    """A table of rotations in bf16, positions of int32."""
    tokens, heads, rows, page, pages, eps = 3, 2, 5, 4, 2, 1e-6
    rng = random.Random(name)
    q = [bf16(rng.uniform(-3, 3)) for _ in range(tokens * heads * 512)]
    kv = [bf16(rng.uniform(-3, 3)) for _ in range(tokens * 512)]
    table, positions, slots = turns_of(rows), [3, 1, 4], [6, -1, 1]
    before = [rng.randrange(256) for _ in range(pages * page * 584)]
    after, q_after = list(before), []
    for n in range(tokens * heads):
        x = [of_bf16(b) for b in q[512 * n : 512 * n + 512]]
        r = 1 / math.sqrt(math.fsum(v * v for v in x) / 512 + eps)
        x = [f32(v * r) for v in x]
        rotate(x, table, positions[n // heads])
        q_after += [bf16(v) for v in x]
    for t, slot in enumerate(slots):
        x = [of_bf16(b) for b in kv[512 * t : 512 * t + 512]]
        rotate(x, table, positions[t])
        x = [of_bf16(bf16(v)) for v in x]
        values, scales = [], []
        for g in range(7):
            part = x[64 * g : 64 * g + 64]
            e = exponent_up(f32(max(1e-4, *map(abs, part)) / 448))
            values += [e4m3(math.ldexp(v, -e)) for v in part]
            scales.append(e + 127)
        values += struct.pack("<64H", *[bf16(v) for v in x[448:]])
        if slot >= 0:
            at = slot // page * page * 584 + slot % page * 576
            after[at : at + 576] = values
            at = slot // page * page * 584 + page * 576 + slot % page * 8
            after[at : at + 8] = scales + [0]
    c = Case("xpu_qnorm_rope_kv_insert", name, bs=page, eps=eps)
    c.tensor("kv", "bfloat16", [tokens, 512], kv)
    c.tensor("slot_mapping", "int64", [tokens], slots)
    c.tensor("positions", "int32", [tokens], positions)
    c.tensor("cos_sin_cache", "bfloat16", [rows, 64], table)
    c.tensor(
        "q",
        "bfloat16",
        [tokens, heads, 512],
        q_after,
        before=q,
        compare={"kind": "float", "rtol": 0.01, "atol": 1e-6},
    )
    c.tensor(
        "swa_kv_cache",
        "uint8",
        [pages, page, 584],
        after,
        before=before,
        compare="exact",
    )
    c.done()


def inverse_rope(name):
    """A table of rotations in bf16."""
    tokens, rows = 2, 5
    rng = random.Random(name)
    o = [bf16(rng.uniform(-3, 3)) for _ in range(tokens * 512)]
    table = turns_of(rows)
    positions, codes, scales = [3, 1], [], []
    for t in range(tokens):
        x = [of_bf16(b) for b in o[t * 512 : t * 512 + 512]]
        turn = [of_bf16(b) for b in table[positions[t] * 64 :][:64]]
        for i in range(32):
            first, second = x[448 + 2 * i], x[449 + 2 * i]
            cos, sin = turn[i], turn[32 + i]
            x[448 + 2 * i] = f32(f32(first * cos) + f32(second * sin))
            x[449 + 2 * i] = f32(f32(second * cos) - f32(first * sin))
        for g in range(4):
            part = x[128 * g : 128 * g + 128]
            least = f32(max(abs(v) for v in part) * f32(1 / 448))
            scale = math.ldexp(1, exponent_up(least))
            scales.append(scale)
            codes += [e4m3(v / scale) for v in part]
    c = Case("fused_inv_rope_fp8_quant", name)
    c.tensor("o", "bfloat16", [tokens, 1, 512], o)
    c.tensor("positions", "int64", [tokens], positions)
    c.tensor("cos_sin_cache", "bfloat16", [rows, 64], table)
    c.tensor(
        "o_fp8",
        "float8_e4m3fn",
        [tokens, 1, 512],
        codes,
        compare="quantized: at most one code step, on few elements",
    )
    padded = [0.0] * 16
    for t in range(tokens):
        for g in range(4):
            padded[4 * g + t] = scales[4 * t + g]
    c.tensor(
        "o_scale",
        "float32",
        [tokens, 1, 4],
        padded,
        strides=[1, 16, 4],
        compare="exact",
    )
    c.done()


def index_key(rows, weight, turn):
    """The key of a group: rows of (128 kv, 128 scores)."""
    key = []
    for d in range(128):
        most = max(score[d] for _, score in rows)
        w = [math.exp(score[d] - most) for _, score in rows]
        key.append(math.fsum(a * kv[d] for a, (kv, _) in zip(w, rows)) / math.fsum(w))
    r = 1 / math.sqrt(math.fsum(c * c for c in key) / 128 + 1e-6)
    key = [c * r * w for c, w in zip(key, weight)]
    for i in range(32):
        first, second = key[64 + 2 * i], key[65 + 2 * i]
        cos, sin = turn[i], turn[32 + i]
        key[64 + 2 * i] = first * cos - second * sin
        key[65 + 2 * i] = second * cos + first * sin
    return [of_bf16(bf16(c)) for c in key]


def index_key_bytes(key, fp4):
    """The bytes of the values and the bytes of the scales."""
    if not fp4:
        e = exponent_up(max(1e-4, *map(abs, key)) / 448)
        return [e4m3(math.ldexp(c, -e)) for c in key], struct.pack("<f", 2.0**e)
    values, scales = [], []
    for g in range(4):
        part = key[32 * g : 32 * g + 32]
        e = exponent_up(max(map(abs, part)) / 6)
        codes = [e2m1(math.ldexp(c, -e)) for c in part]
        values += [codes[i] | codes[i + 1] << 4 for i in range(0, 32, 2)]
        scales.append(e + 127)
    return values, bytes(scales)


def index_keys_128(op, name, fp4, dtype):
    """Index keys compressed 128:1, of states of bf16 in pages of 8 tokens: the
    first group of one request, the second of another. Norm and rotations are of
    `dtype`."""
    ratio, page, entries, pages = 128, 8, 2, 3
    columns = 2 * ratio // page
    rng = random.Random(name)
    own = list(range(columns))
    rng.shuffle(own)
    none = [-1] * (columns // 2)
    table = own[: columns // 2] + none + none + own[columns // 2 :]
    bits = [bf16(rng.uniform(-3, 3)) for _ in range(columns * page * 256)]
    state = [of_bf16(b) for b in bits]
    weight = [f32(rng.uniform(0.5, 1.5)) for _ in range(128)]
    turns = [
        f32(math.cos(p / 9 * (i + 1)) if i < 32 else math.sin(p / 9 * (i - 31)))
        for p in range(2 * ratio)
        for i in range(64)
    ]
    stored = [weight, turns]
    if dtype == "bfloat16":
        stored = [[bf16(x) for x in values] for values in stored]
        weight, turns = ([of_bf16(b) for b in values] for values in stored)
    request, positions = [0, 0, 1, 1, 1], [126, 127, 127, 255, 255]
    slots, key_slots = [0, 1, 2, -1, 4], [5, 3, -1, 0, 4]
    width = 68 if fp4 else 132
    before = [rng.randrange(256) for _ in range(pages * entries * width)]
    after = list(before)
    for r, pos, slot, key_slot in zip(request, positions, slots, key_slots):
        if slot < 0 or key_slot < 0 or (pos + 1) % ratio:
            continue
        rows = []
        for p in range(pos - ratio + 1, pos + 1):
            at = (table[r * columns + p // page] * page + p % page) * 256
            rows.append((state[at : at + 128], state[at + 128 : at + 256]))
        start = pos // ratio * ratio
        key = index_key(rows, weight, turns[start * 64 : start * 64 + 64])
        values, scales = index_key_bytes(key, fp4)
        base, i = key_slot // entries * entries * width, key_slot % entries
        at = base + i * len(values)
        after[at : at + len(values)] = values
        at = base + entries * len(values) + i * 4
        after[at : at + 4] = scales
    c = Case(op, name, cr=ratio, rms_norm_eps=1e-6)
    c.tensor("state_cache", "bfloat16", [columns, page, 256], bits)
    c.tensor("token_to_req_indices", "int32", [5], request)
    c.tensor("positions", "int64", [5], positions)
    c.tensor("slot_mapping", "int64", [5], slots)
    c.tensor("block_table", "int32", [2, columns], table)
    c.tensor("cos_sin_cache", dtype, [2 * ratio, 64], stored[1])
    c.tensor("kv_slot_mapping", "int64", [5], key_slots)
    c.tensor("rms_norm_weight", dtype, [128], stored[0])
    c.tensor(
        "kv_cache",
        "uint8",
        [pages, entries, width],
        after,
        before=before,
        compare="quantized: at most one code step, on few elements",
    )
    c.done()


def prefill_without_lens(name):
    tokens, heads, keys, topk, scale = 2, 8, 12, 6, 512**-0.5
    rng = random.Random(name)
    q = [bf16(rng.uniform(-1, 1)) for _ in range(tokens * heads * 512)]
    kv = [bf16(rng.uniform(-1, 1)) for _ in range(keys * 512)]
    indices = [rng.randrange(keys) for _ in range(tokens * topk)]
    indices[topk - 1] = -1
    values = [of_bf16(b) for b in kv]
    out = []
    for t in range(tokens):
        chosen = [i for i in indices[t * topk : (t + 1) * topk] if i >= 0]
        for h in range(heads):
            row = [of_bf16(b) for b in q[(t * heads + h) * 512 :][:512]]
            p = [
                math.exp(scale * math.fsum(a * b for a, b in zip(row, values[512 * i :])))
                for i in chosen
            ]
            total = math.fsum(p)
            out += [
                bf16(math.fsum(w * values[512 * i + d] for w, i in zip(p, chosen)) / total)
                for d in range(512)
            ]
    c = Case("rocm_sparse_prefill", name, scale=scale)
    c.tensor("q", "bfloat16", [tokens, heads, 512], q)
    c.tensor("kv", "bfloat16", [keys, 1, 512], kv)
    c.tensor("indices", "int32", [tokens, 1, topk], indices)
    c.tensor(
        "output",
        "bfloat16",
        [tokens, heads, 512],
        out,
        compare={"kind": "float", "rtol": 0.02, "atol": 0.02},
    )
    c.done()


if __name__ == "__main__":
    window_metadata("ref_no_prefill", [1, 2, 1], [40, 2, 100], 3, False)
    window_metadata("ref_gather_only", [1, 0, 3, 0], [40, 50, 90, 7], 1, False)
    window_metadata("ref_no_query", [1, 0, 3], [40, 50, 90], 1, True)
    index_stride("ref_page_stride")
    states("ref_bf16_inputs", "float32")
    states("ref_bf16_states", "bfloat16")
    inverse_rope("ref_bf16_table")
    index_queries("ref_bf16_table")
    front_end("ref_bf16_table")
    index_keys_128("compress_indexer_fp8", "ref_c128", False, "float32")
    index_keys_128("compress_indexer_mxfp4", "ref_c128", True, "float32")
    index_keys_128("compress_indexer_fp8", "ref_c128_bf16", False, "bfloat16")
    prefill_without_lens("ref_no_lens")
