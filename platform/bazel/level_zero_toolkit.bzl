"""level_zero_toolkit: this machine's compiler to SPIR-V, if it has one.

@NAME//:tools are two files, which run a clang and the llvm-spirv of its version:
the two that the variable LEVEL_ZERO_TOOLS names, or the newest of the system. No
file where there are none; the library is then built without kernels for Level
Zero. It takes effect where the flag //:level_zero_toolkit names it.
"""

_BUILD = """
filegroup(
    name = "tools",
    srcs = {srcs},
    visibility = ["//visibility:public"],
)
"""

# The version is in the file, so that another compiler compiles anew.
_RUN = """#!/bin/sh
# {version}
exec "{tool}" "$@"
"""

_NAMES = [
    "clang-%d llvm-spirv-%d" % (version, version)
    for version in range(22, 14, -1)
]

def _find(ctx, name):
    path = ctx.path(name) if name.startswith("/") else ctx.which(name)
    return path if path and path.exists else None

# The text of the script that runs it, or nothing.
def _run(ctx, tool):
    path = _find(ctx, tool)
    version = ctx.execute([path, "--version"]) if path else None
    if not version or version.return_code:
        return None
    text = version.stdout.strip().replace("\n", "\n# ")
    return _RUN.format(tool = path, version = text)

def _level_zero_toolkit_impl(ctx):
    named = ctx.os.environ.get("LEVEL_ZERO_TOOLS")
    srcs = []
    for pair in _NAMES if named == None else [named]:
        scripts = [_run(ctx, tool) for tool in pair.split(" ") if tool]
        if len(scripts) == 2 and scripts[0] and scripts[1]:
            srcs = ["clang.sh", "llvm_spirv.sh"]
            for name, text in zip(srcs, scripts):
                ctx.file(name, text)
            break
    ctx.file("BUILD.bazel", _BUILD.format(srcs = repr(srcs)))

level_zero_toolkit = repository_rule(
    implementation = _level_zero_toolkit_impl,
    environ = ["LEVEL_ZERO_TOOLS"],
    local = True,
)
