"""hip_toolkit: the compilers for AMD GPUs of this machine, if it has any.

@NAME//:clang are files that run a clang each, the newest first: those that the
variable HIP_CLANG names, or all that are found. No file where there is none;
the library is then built without kernels for HIP. It takes effect where the
flag //:hip_toolkit names it.
"""

_BUILD = """
filegroup(
    name = "clang",
    srcs = {srcs},
    visibility = ["//visibility:public"],
)
"""

# The version is in the file, so that another compiler compiles anew.
_RUN = """#!/bin/sh
# {version}
exec "{clang}" "$@"
"""

# Older ones lack what the dialect needs. Platforms may name theirs clang alone.
_NAMES = ["clang-%d" % version for version in range(22, 16, -1)] + ["clang"]

def _hip_toolkit_impl(ctx):
    named = ctx.os.environ.get("HIP_CLANG")
    if named != None:
        clangs = [clang for clang in named.split(" ") if clang]
    else:
        clangs = ["/opt/rocm/llvm/bin/clang"] + _NAMES
    srcs = []
    for clang in clangs:
        path = ctx.path(clang) if clang.startswith("/") else ctx.which(clang)
        if not path or not path.exists:
            continue
        version = ctx.execute([path, "--version"])
        if version.return_code:
            continue
        text = version.stdout.strip().replace("\n", "\n# ")
        srcs.append("clang_%d.sh" % len(srcs))
        ctx.file(srcs[-1], _RUN.format(clang = path, version = text))
    ctx.file("BUILD.bazel", _BUILD.format(srcs = repr(srcs)))

hip_toolkit = repository_rule(
    implementation = _hip_toolkit_impl,
    environ = ["HIP_CLANG"],
    local = True,
)
