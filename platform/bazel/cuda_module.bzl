"""cuda: the CUDA toolkit of this machine as @spmla_cuda_toolkit, for projects
that use SpMLA as a Bazel module; see cuda_toolkit.bzl."""

load(":platform/bazel/cuda_toolkit.bzl", "cuda_toolkit")

def _cuda_impl(_ctx):
    cuda_toolkit(name = "spmla_cuda_toolkit")

cuda = module_extension(implementation = _cuda_impl)
