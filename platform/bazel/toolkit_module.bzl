"""cuda, hip and level_zero: the toolkits of this machine as @spmla_cuda_toolkit,
@spmla_hip_toolkit and @spmla_level_zero_toolkit, for projects that use SpMLA as a
Bazel module; see cuda_toolkit.bzl, hip_toolkit.bzl and level_zero_toolkit.bzl."""

load(":platform/bazel/cuda_toolkit.bzl", "cuda_toolkit")
load(":platform/bazel/hip_toolkit.bzl", "hip_toolkit")
load(":platform/bazel/level_zero_toolkit.bzl", "level_zero_toolkit")

def _cuda_impl(_ctx):
    cuda_toolkit(name = "spmla_cuda_toolkit")

def _hip_impl(_ctx):
    hip_toolkit(name = "spmla_hip_toolkit")

def _level_zero_impl(_ctx):
    level_zero_toolkit(name = "spmla_level_zero_toolkit")

cuda = module_extension(implementation = _cuda_impl)

hip = module_extension(implementation = _hip_impl)

level_zero = module_extension(implementation = _level_zero_impl)
