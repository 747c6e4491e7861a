"""Repositories for a WORKSPACE that uses SpMLA, and for SpMLA's own.

    load(
        "@spmla//:platform/bazel/repositories.bzl",
        "offline_repositories",
        "spmla_repositories",
    )

    spmla_repositories()

    offline_repositories()

Both come after the project's own repositories and leave those alone. Nothing is
fetched. Kernels for CUDA, HIP and Level Zero are built with the options

    --@spmla//:cuda_toolkit=@spmla_cuda_toolkit//:nvcc
    --@spmla//:hip_toolkit=@spmla_hip_toolkit//:clang
    --@spmla//:level_zero_toolkit=@spmla_level_zero_toolkit//:tools

which belong into the project's .bazelrc, behind "build".
"""

load(":platform/bazel/cuda_toolkit.bzl", "cuda_toolkit")
load(":platform/bazel/hip_toolkit.bzl", "hip_toolkit")
load(":platform/bazel/level_zero_toolkit.bzl", "level_zero_toolkit")

def _written_impl(ctx):
    for path, text in ctx.attr.files.items():
        ctx.file(path, text)

_written = repository_rule(
    implementation = _written_impl,
    attrs = {"files": attr.string_dict()},
)

def _native(names):
    return "".join(["%s = native.%s\n" % (name, name) for name in names])

# The rules built into Bazel < 8: those that SpMLA uses and Bazel's own tools.
_RULES_CC = {
    "cc/BUILD.bazel": "",
    "cc/defs.bzl": _native([
        "cc_binary",
        "cc_import",
        "cc_library",
        "cc_proto_library",
        "cc_test",
        "cc_toolchain",
        "cc_toolchain_suite",
        "objc_library",
    ]),
}

# Bazel's own tools load these names, also where no Java is built.
_RULES_JAVA = {
    "java/BUILD.bazel": "",
    "java/defs.bzl": _native([
        "java_binary",
        "java_import",
        "java_library",
        "java_plugin",
        "java_proto_library",
        "java_runtime",
        "java_test",
        "java_toolchain",
    ]),
}

# Every test rule names these two; they run only under `bazel coverage`.
_COVERAGE_TOOLS = {
    "BUILD.bazel": "".join(["""
sh_binary(
    name = "%s",
    srcs = ["nothing.sh"],
    visibility = ["//visibility:public"],
)
""" % name for name in [
        "coverage_report_generator",
        "lcov_merger",
    ]]),
    "nothing.sh": "#!/bin/sh\n",
}

def _maybe(rule, name, **kw):
    if not native.existing_rule(name):
        rule(name = name, **kw)

def spmla_repositories():
    """What SpMLA loads from and the project lacks.

    The rules_cc declared here names the rules built into Bazel < 8.
    @spmla_cuda_toolkit is empty on a machine without nvcc, @spmla_hip_toolkit on
    one without clang, @spmla_level_zero_toolkit on one without llvm-spirv.
    """
    _maybe(_written, "rules_cc", files = _RULES_CC)
    _maybe(cuda_toolkit, "spmla_cuda_toolkit")
    _maybe(hip_toolkit, "spmla_hip_toolkit")
    _maybe(level_zero_toolkit, "spmla_level_zero_toolkit")

def offline_repositories():
    """What Bazel 4 would fetch for a project of C and C++, as stubs.

    For a project that builds without a network.
    """
    _maybe(_written, "rules_java", files = _RULES_JAVA)
    _maybe(_written, "remote_coverage_tools", files = _COVERAGE_TOOLS)
