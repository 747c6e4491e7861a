"""cuda and hip: the toolkits of this machine as @spmla_cuda_toolkit and
@spmla_hip_toolkit, for projects that use SpMLA as a Bazel module; see
cuda_toolkit.bzl and hip_toolkit.bzl."""

load(":platform/bazel/cuda_toolkit.bzl", "cuda_toolkit")
load(":platform/bazel/hip_toolkit.bzl", "hip_toolkit")

def _cuda_impl(_ctx):
    cuda_toolkit(name = "spmla_cuda_toolkit")

def _hip_impl(_ctx):
    hip_toolkit(name = "spmla_hip_toolkit")

cuda = module_extension(implementation = _cuda_impl)

hip = module_extension(implementation = _hip_impl)
