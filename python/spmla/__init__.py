"""SpMLA for Python: DeepSeek sparse attention, through libspmla.so by ctypes.

`spmla.flash_mla`, `spmla.deep_gemm` and `spmla.vllm` have the functions of
those projects with their names and arguments, so that a caller switches by an
import. `StepRing` replays captured steps. Arrays are NumPy's on the CPU; on
CUDA anything with data_ptr(), __cuda_array_interface__ or __dlpack__.
"""

from . import v32
from ._arrays import DeviceArray
from ._context import Context, config, operations
from ._native import Error, RingFull, version
from .deep_gemm import (
    fp8_mqa_logits,
    fp8_paged_mqa_logits,
    get_paged_mqa_logits_metadata,
)
from .flash_mla import (
    FlashMLASchedMeta,
    flash_mla_sparse_fwd,
    flash_mla_with_kvcache,
    get_mla_metadata,
)
from .step import Chunk, Request, StepRing, Store, Ticket, split_step
from .vllm import top_k_per_row_decode, top_k_per_row_prefill

__version__ = version()

__all__ = [
    "Chunk",
    "Context",
    "DeviceArray",
    "Error",
    "FlashMLASchedMeta",
    "Request",
    "RingFull",
    "StepRing",
    "Store",
    "Ticket",
    "config",
    "flash_mla_sparse_fwd",
    "flash_mla_with_kvcache",
    "fp8_mqa_logits",
    "fp8_paged_mqa_logits",
    "get_mla_metadata",
    "get_paged_mqa_logits_metadata",
    "operations",
    "split_step",
    "top_k_per_row_decode",
    "top_k_per_row_prefill",
    "v32",
    "version",
]
