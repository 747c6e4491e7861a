"""For a project that takes SpMLA in its WORKSPACE.

    load("@spmla//:platform/bazel/repositories.bzl", "spmla_repositories")
    spmla_repositories()

Kernels for CUDA are then built with the option

    --@spmla//:cuda_toolkit=@spmla_cuda_toolkit//:nvcc

which belongs into the project's .bazelrc, behind "build".
"""

load(":platform/bazel/cuda_toolkit.bzl", "cuda_toolkit")

def _rules_cc_impl(ctx):
    stub = ctx.path(Label("//:platform/bazel/stubs/rules_cc/WORKSPACE")).dirname
    ctx.symlink("%s/cc" % stub, "cc")
    ctx.file("WORKSPACE", "workspace(name = \"rules_cc\")\n")

_rules_cc = repository_rule(implementation = _rules_cc_impl)

def spmla_repositories():
    """Declares what SpMLA loads from and the project lacks; fetches nothing.

    The rules_cc it declares names the rules built into Bazel < 8. Call it after
    the project's own repositories, whose rules_cc is then left alone.
    @spmla_cuda_toolkit is empty on a machine without nvcc.
    """
    if not native.existing_rule("rules_cc"):
        _rules_cc(name = "rules_cc")
    if not native.existing_rule("spmla_cuda_toolkit"):
        cuda_toolkit(name = "spmla_cuda_toolkit")
