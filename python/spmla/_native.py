"""libspmla.so, declared as in the headers. python/tests compares each
structure with the C compiler's."""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
    sizeof,
)
from typing import Any

MAX_BUCKETS = 16
MAX_TABLE_GROUPS = 8
MAX_PLAN_ROWS = 96
MEMORY_COUNT = 4
LIFE_COUNT = 5
BUCKET_PREFILL = MAX_BUCKETS

HOST, PINNED, DEVICE, CACHE = range(MEMORY_COUNT)
MODELS = {"v32": 1, "v4-flash": 2, "v4-pro": 3}
FROM_RING, FROM_DEVICE, ADVANCE = 1, 2, 3
REQUEST_JOIN = 1
STEP_LENS_ON_DEVICE = 1
LAYOUT_FP8_DS_MLA, LAYOUT_MLA_BF16, LAYOUT_INDEX_FP8, LAYOUT_V4_FP8 = 1, 2, 3, 4
DTYPE_BF16, DTYPE_FP16, DTYPE_F32 = 0, 1, 2
REAL_F32, REAL_BF16 = 0, 1
LOGITS_CLEAN, LOGITS_ABSOLUTE, LOGITS_COMPRESSED = 1, 0, 2
SCHEDULE_SM90, SCHEDULE_SM100, SCHEDULE_SM100_VARLEN = 1, 2, 3


class Sized(Structure):
    """A structure that begins with its own size."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.struct_bytes = sizeof(self)


def _fields(*groups: tuple[Any, str]) -> list[tuple[str, Any]]:
    return [(name, kind) for kind, names in groups for name in names.split()]


class Diag(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes status want_rule index"),
        (c_char_p, "field"),
        (c_uint64, "got want"),
    )


class Native(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes flags"),
        (c_void_p, "context device queue parallel_for" " parallel_user"),
        (c_uint32, "graph_copies reserved"),
    )


class Cache(Sized):
    _fields_ = _fields(
        (
            c_uint32,
            "struct_bytes layout table_group"
            " entries_per_page pages encoding",
        ),
        (c_uint64, "page_stride_bytes"),
        (c_void_p, "base"),
    )


class Shape(Structure):
    _fields_ = _fields((c_uint32, "tokens requests next_n max_live_context"))


class TableConfig(Structure):
    _fields_ = _fields((c_uint32, "source page_tokens pool_pages ring_columns"))


class Config(Sized):
    _fields_ = [
        *_fields(
            (
                c_uint32,
                "struct_bytes model flags heads index_heads topk"
                " kv_layout kv_scale_mode max_rows max_context_tokens"
                " cache_layers",
            ),
            (c_float, "softmax_scale"),
            (c_uint32, "bucket_count"),
        ),
        ("buckets", Shape * MAX_BUCKETS),
        ("groups", TableConfig * MAX_TABLE_GROUPS),
        *_fields(
            (
                c_uint32,
                "ring_slots max_table_stores max_update_pages"
                " max_graphs max_graph_nodes queue_entries"
                " max_prefill_tokens",
            ),
            (c_uint64, "logits_budget_bytes"),
            (
                c_uint32,
                "prefill_workspace_tokens cpu_workers window_tokens"
                " index_layout c4a_layers c128a_layers draft_tokens"
                " output_quant dcp_ranks dcp_rank dcp_interleave reserved",
            ),
        ),
    ]


class Device(Sized):
    _fields_ = _fields(
        (
            c_uint32,
            "struct_bytes kind arch sm_count" " subgroup_width reserved",
        ),
        (c_uint64, "ops"),
    )


class Extent(Structure):
    _fields_ = _fields(
        (c_uint32, "buf memory life branch"), (c_uint64, "offset_bytes bytes")
    )


class Plan(Sized):
    _fields_ = [
        *_fields(
            (
                c_uint32,
                "struct_bytes version row_count columns max_tokens"
                " max_requests",
            ),
            (c_uint64, "record_bytes logits_elems record_key"),
        ),
        ("region_bytes", c_uint64 * MEMORY_COUNT),
        ("region_align", c_uint64 * MEMORY_COUNT),
        ("life_bytes", c_uint64 * LIFE_COUNT),
        ("group_table", c_uint32 * MAX_TABLE_GROUPS),
        ("group_columns", c_uint32 * MAX_TABLE_GROUPS),
        ("config", Config),
        ("device", Device),
        ("extents", Extent * MAX_PLAN_ROWS),
    ]


class Row(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes buf memory life branch" " elem_bytes"),
        (c_uint64, "count offset_bytes bytes align_bytes"),
        (c_char_p, "name shape writer"),
    )


class Region(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes memory"),
        (c_void_p, "base"),
        (c_uint64, "bytes"),
    )


class Request(Structure):
    _fields_ = _fields((c_uint32, "row query_tokens seq_len_tokens flags"))


class TableStore(Structure):
    _fields_ = [
        *_fields((c_uint32, "group row first_col count")),
        ("pages", POINTER(c_int32)),
    ]


class Step(Sized):
    _fields_ = [
        *_fields((c_uint32, "struct_bytes flags request_count store_count")),
        ("requests", POINTER(Request)),
        ("stores", POINTER(TableStore)),
    ]


class StepInfo(Sized):
    _fields_ = _fields(
        (
            c_uint32,
            "struct_bytes bucket tokens requests next_n" " live_context",
        ),
        (c_uint64, "record_bytes"),
    )


class Range(Structure):
    _fields_ = _fields((c_uint32, "first end"))


class PrefillChunk(Structure):
    _fields_ = [
        ("queries", Range),
        ("requests", Range),
        *_fields((c_uint32, "request_count live_context")),
    ]


class DeviceStatus(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes count fault row"), (c_uint64, "step")
    )


class V32Layer(Sized):
    _fields_ = [
        *_fields(
            (c_uint32, "struct_bytes rope_style cos_sin_rows"),
            (c_float, "norm_eps"),
            (c_void_p, "kv_c k_pe"),
            (c_int64, "kv_c_stride_elems k_pe_stride_elems"),
            (c_void_p, "index_k"),
            (c_int64, "index_k_stride_elems"),
            (c_void_p, "index_norm_weight index_norm_bias cos_sin" " index_q"),
            (
                c_int64,
                "index_q_token_stride_elems" " index_q_head_stride_elems",
            ),
            (c_void_p, "index_weights"),
            (c_int64, "index_weights_stride_elems"),
            (c_uint32, "index_weights_dtype index_q_scale_floor"),
            (c_void_p, "topk_indices topk_lens"),
            (c_int64, "topk_stride_elems"),
            (c_void_p, "q"),
            (c_int64, "q_token_stride_elems q_head_stride_elems"),
            (c_void_p, "attn_sink out"),
            (c_int64, "out_token_stride_elems out_head_stride_elems"),
            (c_void_p, "lse"),
            (c_int64, "lse_token_stride_elems lse_head_stride_elems"),
            (c_uint32, "empty_lse cos_sin_dtype"),
        ),
        ("kv", Cache),
        ("index", Cache),
        *_fields((c_uint32, "index_norm_dtype reserved")),
    ]


class SparseDecode(Sized):
    _fields_ = [
        *_fields(
            (c_uint32, "struct_bytes tokens heads topk empty_lse"),
            (c_float, "softmax_scale"),
            (c_void_p, "q"),
            (c_int64, "q_token_stride_elems q_head_stride_elems"),
            (c_void_p, "slots"),
            (c_int64, "slots_stride_elems"),
            (c_void_p, "topk_lens attn_sink out"),
            (c_int64, "out_token_stride_elems out_head_stride_elems"),
            (c_void_p, "lse"),
            (c_int64, "lse_token_stride_elems lse_head_stride_elems"),
        ),
        ("cache", Cache),
        *_fields(
            (c_uint32, "extra_topk parts"),
            (c_void_p, "extra_slots"),
            (c_int64, "extra_slots_stride_elems"),
            (c_void_p, "extra_topk_lens"),
        ),
        ("extra_cache", Cache),
        *_fields(
            (
                c_void_p,
                "tile_scheduler_metadata num_splits split_out" " split_lse",
            ),
            (c_uint32, "split_rows next_n"),
            (c_void_p, "indptr extra_indptr"),
            (
                c_int64,
                "q_request_stride_elems out_request_stride_elems"
                " lse_request_stride_elems",
            ),
            (c_uint32, "lens_tokens lse_base lse_sink combine"),
            (c_void_p, "workspace"),
            (c_uint64, "workspace_bytes"),
            (c_uint32, "longest"),
            (c_uint32, "extra_longest"),
            (c_uint32, "whole_tokens"),
            (c_uint32, "reserved"),
        ),
    ]


class SparsePrefill(Sized):
    _fields_ = _fields(
        (
            c_uint32,
            "struct_bytes tokens heads dim topk kv_rows lse_base" " empty_lse",
        ),
        (c_float, "softmax_scale"),
        (c_uint32, "lse_sink"),
        (c_void_p, "q"),
        (c_int64, "q_token_stride_elems q_head_stride_elems"),
        (c_void_p, "kv"),
        (c_int64, "kv_stride_elems"),
        (c_void_p, "indices"),
        (c_int64, "indices_stride_elems"),
        (c_void_p, "topk_lens attn_sink out"),
        (c_int64, "out_token_stride_elems out_head_stride_elems"),
        (c_void_p, "max_logits lse"),
        (c_int64, "lse_token_stride_elems lse_head_stride_elems"),
        (c_void_p, "indptr"),
    )


class MqaLogits(Sized):
    _fields_ = [
        *_fields(
            (
                c_uint32,
                "struct_bytes tokens heads rows columns" " table_stride_elems",
            ),
            (
                c_void_p,
                "q weights token_row context_lens row_starts"
                " block_table table_cols logits",
            ),
            (c_uint64, "logits_elems"),
        ),
        ("cache", Cache),
        ("q_scales", c_void_p),
        ("row_stride_elems", c_int64),
        *_fields((c_uint32, "logits_dtype q_encoding")),
    ]


class MqaLogitsGathered(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes tokens heads keys form columns"),
        (c_void_p, "q weights"),
        (c_int64, "weights_stride_elems"),
        (c_void_p, "k k_scales starts ends logits"),
        (c_int64, "logits_stride_elems"),
        (c_void_p, "q_scales"),
        (c_uint32, "layout logits_dtype k_encoding q_encoding"),
    )


class IndexerSchedule(Sized):
    _fields_ = _fields(
        (c_uint32, "struct_bytes rule batch next_n num_sms reserved"),
        (c_void_p, "context_lens"),
        (c_int64, "context_lens_stride_elems"),
        (c_void_p, "indices schedule"),
    )


class IndexMap(Sized):
    _fields_ = _fields(
        (
            c_uint32,
            "struct_bytes tokens k rows columns table_stride_elems"
            " page_tokens page_stride_rows pool_pages workspaces",
        ),
        (c_void_p, "token_row block_table table_cols indices"),
        (c_int64, "indices_stride_elems"),
        (c_void_p, "lens slots"),
        (c_int64, "slots_stride_elems"),
        (
            c_void_p,
            "valid_counts workspace_ids workspace_starts context_lens"
            " slot_mapping",
        ),
        (c_uint32, "compact entries_before"),
        (c_void_p, "indptr first_cols"),
        (c_uint32, "capacity_elems whole"),
        (c_void_p, "other_lens kept_lens"),
    )


class Topk(Sized):
    _fields_ = [
        *_fields(
            (c_uint32, "struct_bytes rows k ties"),
            (c_void_p, "logits"),
            (c_uint64, "logits_elems"),
            (c_void_p, "row_starts context_lens indices"),
            (c_int64, "indices_stride_elems"),
            (c_void_p, "lens"),
            (c_int64, "row_stride_elems"),
            (c_uint32, "logits_dtype reserved"),
        ),
        ("map", IndexMap),
    ]


# The structures by their names in C.
STRUCTS = {
    "spmla_diag": Diag,
    "spmla_native": Native,
    "spmla_cache": Cache,
    "spmla_shape": Shape,
    "spmla_table_config": TableConfig,
    "spmla_config": Config,
    "spmla_device": Device,
    "spmla_extent": Extent,
    "spmla_plan": Plan,
    "spmla_row": Row,
    "spmla_region": Region,
    "spmla_request": Request,
    "spmla_table_store": TableStore,
    "spmla_step": Step,
    "spmla_step_info": StepInfo,
    "spmla_range": Range,
    "spmla_prefill_chunk": PrefillChunk,
    "spmla_device_status": DeviceStatus,
    "spmla_v32_layer": V32Layer,
    "spmla_sparse_decode_args": SparseDecode,
    "spmla_sparse_prefill_args": SparsePrefill,
    "spmla_mqa_logits_args": MqaLogits,
    "spmla_mqa_logits_gathered_args": MqaLogitsGathered,
    "spmla_indexer_schedule_args": IndexerSchedule,
    "spmla_index_map_args": IndexMap,
    "spmla_topk_args": Topk,
}


class Error(RuntimeError):
    """A call that failed; `status` is the name, "SPMLA_E_RANGE"."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text or status)
        self.status = status


class RingFull(Error):
    """No free slot: wait until a step has run, then write again. Nothing was
    written."""


def _find() -> str:
    """SPMLA_LIBRARY, else the one in this package, else the system's."""
    named = os.environ.get("SPMLA_LIBRARY")
    if named:
        return named
    inside = pathlib.Path(__file__).with_name("libspmla.so")
    return str(inside) if inside.exists() else "libspmla.so.0.1"


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(_find())
    except OSError as why:
        raise ImportError(
            f"{why}; `pip install .` in SpMLA's folder brings the library,"
            " SPMLA_LIBRARY names another one"
        ) from None


lib = _load()

for _name, _types in {
    "spmla_config_preset": [POINTER(Config), c_uint32],
    "spmla_backend_query": [c_void_p, c_void_p, POINTER(Device), POINTER(Diag)],
    "spmla_plan_make": [
        POINTER(Plan),
        POINTER(Config),
        POINTER(Device),
        POINTER(Diag),
    ],
    "spmla_plan_row": [POINTER(Plan), c_uint32, POINTER(Row)],
    "spmla_init": [
        POINTER(c_void_p),
        POINTER(Plan),
        c_void_p,
        c_void_p,
        POINTER(Region),
        c_uint32,
        POINTER(Diag),
    ],
    "spmla_fini": [c_void_p],
    "spmla_wake": [c_void_p],
    "spmla_split_step": [
        POINTER(Plan),
        POINTER(Step),
        POINTER(PrefillChunk),
        c_uint32,
        POINTER(c_uint32),
        POINTER(Diag),
    ],
    "spmla_prefill_chunk_requests": [
        POINTER(Step),
        POINTER(PrefillChunk),
        POINTER(Request),
        c_uint32,
        POINTER(Diag),
    ],
    "spmla_step_write": [
        c_void_p,
        POINTER(Step),
        POINTER(c_uint64),
        POINTER(StepInfo),
    ],
    "spmla_step_undo": [c_void_p, c_uint64],
    "spmla_step_launched": [c_void_p, c_uint64],
    "spmla_step_resync": [c_void_p],
    "spmla_step_prologue": [c_void_p, POINTER(Shape), c_uint32, c_void_p],
    "spmla_graph_begin": [c_void_p, c_void_p],
    "spmla_graph_end": [c_void_p, POINTER(c_uint32)],
    "spmla_graph_abort": [c_void_p],
    "spmla_graph_replay": [c_void_p, c_uint32, c_uint64, c_void_p],
    "spmla_status_read": [c_void_p, POINTER(DeviceStatus)],
    "spmla_status_clear": [c_void_p],
    "spmla_v32_layer_preset": [c_void_p, c_uint32, POINTER(V32Layer)],
    "spmla_v32_attn": [c_void_p, POINTER(V32Layer), POINTER(Shape), c_void_p],
    "spmla_sparse_decode": [c_void_p, POINTER(SparseDecode), c_void_p],
    "spmla_sparse_prefill": [c_void_p, POINTER(SparsePrefill), c_void_p],
    "spmla_mqa_logits": [c_void_p, POINTER(MqaLogits), c_void_p],
    "spmla_mqa_logits_gathered": [
        c_void_p,
        POINTER(MqaLogitsGathered),
        c_void_p,
    ],
    "spmla_indexer_schedule": [c_void_p, POINTER(IndexerSchedule), c_void_p],
    "spmla_topk": [c_void_p, POINTER(Topk), c_void_p],
}.items():
    _function = getattr(lib, _name)
    _function.argtypes = _types
    _function.restype = c_uint32

lib.spmla_version_string.restype = c_char_p
lib.spmla_status_name.argtypes = [c_uint32]
lib.spmla_status_name.restype = c_char_p
lib.spmla_fault_name.argtypes = [c_uint32]
lib.spmla_fault_name.restype = c_char_p
lib.spmla_diag_text.argtypes = [POINTER(Diag), c_char_p, c_uint32]
lib.spmla_diag_text.restype = c_uint32
lib.spmla_ctx_diag.argtypes = [c_void_p]
lib.spmla_ctx_diag.restype = POINTER(Diag)
lib.spmla_view.argtypes = [c_void_p, c_uint32, POINTER(c_uint64)]
lib.spmla_view.restype = c_void_p

BACKENDS = {
    name: ctypes.addressof(ctypes.c_char.in_dll(lib, f"spmla_{name}"))
    for name in ("cpu", "cuda")
}


def version() -> str:
    """The library's version, "0.1.0"."""
    text: bytes = lib.spmla_version_string()
    return text.decode()


def check(status: int, diag: Diag | None = None) -> None:
    """Raises the error of a call that returned `status`."""
    if status == 0:
        return
    name = lib.spmla_status_name(status).decode()
    text = ""
    if diag is not None and diag.status == status:
        line = ctypes.create_string_buffer(256)
        lib.spmla_diag_text(byref(diag), line, sizeof(line))
        text = line.value.decode()
    raise (RingFull if name == "SPMLA_E_RING_FULL" else Error)(name, text)
