"""kernel_blob: the kernels for a platform as an object file for the library.

What is in it, and in its output group "report", the platform's blob.sh says,
which makes both. Without a toolkit there are no kernels and no report.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _kernel_blob_impl(ctx):
    cc = find_cpp_toolchain(ctx)
    source = ctx.file.kernels
    toolkit = ctx.files.toolkit
    object = ctx.actions.declare_file(ctx.label.name + ".o")
    blob = ctx.actions.declare_file(ctx.label.name + "." + ctx.attr.format)
    report = ctx.actions.declare_file(ctx.label.name + ".report")

    includes, headers = [], []
    for dep in ctx.attr.deps:
        context = dep[CcInfo].compilation_context
        headers.append(context.headers)
        for folders in [context.includes, context.system_includes, context.quote_includes]:
            includes += ["-I" + f for f in folders.to_list()]
    ctx.actions.run_shell(
        command = "exec sh \"$@\"",
        arguments = [
            ctx.file.script.path,
            cc.compiler_executable,
            " ".join([file.path for file in toolkit]),
            source.path,
            object.path,
        ] + ctx.attr.flags + includes,
        inputs = depset(
            [source, ctx.file.script] + ctx.files.more + toolkit,
            transitive = headers + [cc.all_files],
        ),
        outputs = [object, blob, report],
        mnemonic = "KernelBlob",
        progress_message = "Compiling kernels for " + ctx.attr.platform,
        use_default_shell_env = True,
    )
    return [
        DefaultInfo(files = depset([object])),
        OutputGroupInfo(blob = depset([blob]), report = depset([report])),
    ]

kernel_blob = rule(
    implementation = _kernel_blob_impl,
    attrs = {
        "deps": attr.label_list(
            doc = "What the kernels include.",
            providers = [CcInfo],
        ),
        "flags": attr.string_list(
            doc = "For the compiler of the kernels.",
        ),
        "format": attr.string(
            doc = "How the name of the file of kernels ends.",
            mandatory = True,
        ),
        "kernels": attr.label(
            doc = "The source.",
            mandatory = True,
            allow_single_file = True,
        ),
        "more": attr.label_list(
            doc = "Sources beside it that blob.sh compiles, too.",
            allow_files = True,
        ),
        "platform": attr.string(
            doc = "Its name.",
            mandatory = True,
        ),
        "script": attr.label(
            doc = "The platform's blob.sh.",
            mandatory = True,
            allow_single_file = True,
        ),
        "toolkit": attr.label(
            doc = "The compilers as a file each, or no file.",
            mandatory = True,
            allow_files = True,
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
