"""spirv_object: a module of SPIR-V as an object file for the CPU, and a table of its
kernels as a C file. See substitutes/spirv_object.sh. Without a toolkit there are
no kernels."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _spirv_object_impl(ctx):
    cc = find_cpp_toolchain(ctx)
    object = ctx.actions.declare_file(ctx.label.name + ".o")
    table = ctx.actions.declare_file(ctx.label.name + ".c")
    ctx.actions.run_shell(
        command = "exec sh \"$@\"",
        arguments = [
            ctx.file.script.path,
            cc.compiler_executable,
            " ".join([file.path for file in ctx.files.toolkit]),
            ctx.file.spirv.path,
            table.path,
            object.path,
        ],
        inputs = depset(
            [ctx.file.script, ctx.file.spirv] + ctx.files.toolkit,
            transitive = [cc.all_files],
        ),
        outputs = [object, table],
        mnemonic = "SpirvObject",
        progress_message = "Compiling SPIR-V for the CPU",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([object, table]))]

spirv_object = rule(
    implementation = _spirv_object_impl,
    attrs = {
        "script": attr.label(
            default = ":substitutes/spirv_object.sh",
            allow_single_file = True,
        ),
        "spirv": attr.label(
            doc = "The module; an empty file without a toolkit.",
            mandatory = True,
            allow_single_file = True,
        ),
        "toolkit": attr.label(
            doc = "clang and llvm-spirv as a file each, or no file.",
            mandatory = True,
            allow_files = True,
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
