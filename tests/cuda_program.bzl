"""cuda_program: a program of an engine that uses the CUDA runtime.

nvcc compiles it, and links it with the static runtime and the archive. Where
there is no toolkit it is a script that says SKIPPED, with exit status 77.
"""

# $1 nvcc, $2 the program, then all that is compiled and linked.
_BUILD = """set -eu
nvcc=$1 program=$2
shift 2
# nvcc names its files by its process, which has one number in all sandboxes.
export TMPDIR="$program.tmp"
rm -rf "$TMPDIR"
mkdir "$TMPDIR"
# No source has device code for another to link. Its kernels are small: a driver
# compiles them from the PTX for devices after 8.x. The program needs libc only.
"$nvcc" -std=c++17 -O2 '-gencode=arch=compute_80,code=[sm_80,compute_80]' \\
    -cudart=static --no-device-link \\
    -Xcompiler -Wall,-Wextra,-Werror \\
    -Xlinker -s -Xcompiler -static-libgcc,-static-libstdc++ \\
    -o "$program" "$@"
rm -rf "$TMPDIR"
"""

_SKIP = """#!/bin/sh
echo "SKIPPED: no nvcc when this was built"
exit 77
"""

def _cuda_program_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    toolkit = ctx.files.toolkit
    if not toolkit:
        ctx.actions.write(program, _SKIP, is_executable = True)
        return [DefaultInfo(executable = program)]

    # What is not below an include folder is named from the root.
    includes, headers = ["-I."], []
    for dep in ctx.attr.deps:
        context = dep[CcInfo].compilation_context
        headers.append(context.headers)
        for folders in [context.includes, context.system_includes, context.quote_includes]:
            includes += ["-I" + f for f in folders.to_list()]
    archives = [f for f in ctx.files.archive if f.extension == "a"]
    ctx.actions.run_shell(
        command = _BUILD,
        arguments = [toolkit[0].path, program.path] + includes +
                    [f.path for f in ctx.files.srcs + archives] +
                    ["-ldl", "-lm"],
        inputs = depset(
            ctx.files.srcs + ctx.files.hdrs + archives + toolkit,
            transitive = headers,
        ),
        outputs = [program],
        mnemonic = "CudaProgram",
        progress_message = "Compiling an engine on the CUDA runtime",
        use_default_shell_env = True,
    )
    return [DefaultInfo(executable = program)]

cuda_program = rule(
    implementation = _cuda_program_impl,
    executable = True,
    attrs = {
        "archive": attr.label(
            doc = "The library, libNAME.a.",
            mandatory = True,
        ),
        "deps": attr.label_list(
            doc = "The library again, for its headers.",
            providers = [CcInfo],
        ),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "srcs": attr.label_list(
            mandatory = True,
            allow_files = [".cu"],
        ),
        "toolkit": attr.label(
            doc = "nvcc as one file, or no file.",
            mandatory = True,
            allow_files = True,
        ),
    },
)
