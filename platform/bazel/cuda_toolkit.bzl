"""cuda_toolkit: the CUDA toolkit of this machine, if it has one.

@NAME//:nvcc is one file that runs nvcc: the one that the variable NVCC names,
or /usr/local/cuda's. It is no file where there is none, or nvcc does not
run; the library is then built without kernels for CUDA. It takes effect where
the flag //:cuda_toolkit names it.
"""

_BUILD = """
filegroup(
    name = "nvcc",
    srcs = {srcs},
    visibility = ["//visibility:public"],
)
"""

# The version is in the file, so that another toolkit compiles anew.
_RUN = """#!/bin/sh
# {version}
exec "{nvcc}" "$@"
"""

def _cuda_toolkit_impl(ctx):
    nvcc = ctx.os.environ.get("NVCC") or "/usr/local/cuda/bin/nvcc"
    version = ctx.execute([nvcc, "--version"]) if ctx.path(nvcc).exists else None
    if version and version.return_code == 0:
        text = version.stdout.strip().replace("\n", "\n# ")
        ctx.file("nvcc.sh", _RUN.format(nvcc = nvcc, version = text))
        ctx.file("BUILD.bazel", _BUILD.format(srcs = "[\"nvcc.sh\"]"))
    else:
        ctx.file("BUILD.bazel", _BUILD.format(srcs = "[]"))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["NVCC"],
    local = True,
)
