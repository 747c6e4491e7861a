"""cuda_blob: the kernels for CUDA as an object file for the library.

The object has the fatbin as read-only data, aligned to 64 bytes, or no bytes
where there is no toolkit. Its symbols are spmla_i_cuda_blob, _blob_bytes and
_blob_driver (the driver's version that it needs); see init_cuda.h.

The output group "report" is what ptxas says of each kernel for each target, and
the bytes of each binary before compression; empty where there is no toolkit.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# One binary for each; 90 and 90a have variants of their own. The oldest is also
# there as PTX, for devices that are newer than the toolkit.
_TARGETS = ["80", "86", "89", "90", "90a", "100", "120"]

# $1 the kernels, $2 the blob, $3 the toolkit's nvcc or nothing, then flags.
_COMPILE = """set -eu
source=$1 blob=$2 nvcc=$3
shift 3
if [ -z "$nvcc" ]; then
    : >"$blob"
    : >"$blob.report"
    echo 0 >"$blob.version"
    exit
fi
targets=
for arch in {targets}; do
    case $arch in
    80) code="[sm_80,compute_80]" ;;
    *) code=sm_$arch ;;
    esac
    # If this toolkit knows it; the list has a line for each, without "a".
    if "$nvcc" --list-gpu-code | grep -qx "sm_${{arch%a}}"; then
        targets="$targets -gencode=arch=compute_$arch,code=$code"
    fi
done
# A quarter of the size; older toolkits compress by themselves.
if "$nvcc" --help | grep -q -e --compress-mode; then
    targets="$targets --compress-mode=size"
fi
# nvcc names its files by its process, which has one number in all sandboxes.
export TMPDIR="$blob.keep"
rm -rf "$TMPDIR"
mkdir "$TMPDIR"
"$nvcc" -x cu -DSPMLA_GPU_KERNELS -O3 -fmad=false -t 0 --fatbin $targets \\
    -Xptxas -v --keep --keep-dir "$TMPDIR" "$@" -o "$blob" "$source" \\
    2>"$blob.report" || {{
    cat "$blob.report" >&2
    exit 1
}}
grep -vE '^(ptxas info|  )' "$blob.report" >&2 || true # warnings
for cubin in "$TMPDIR"/*.cubin; do
    arch=${{cubin##*_}}
    echo "cubin sm_${{arch%.cubin}} $(wc -c <"$cubin") bytes" >>"$blob.report"
done
rm -rf "$TMPDIR"
sed -i '/Compile time/d' "$blob.report" # or no two were the same
# Any driver of the toolkit's major version runs its binaries.
"$nvcc" --version | sed -n 's/.*release \\([0-9]*\\)\\..*/\\1/p' >"$blob.version"
""".format(targets = " ".join(_TARGETS))

# $1 the compiler, $2 the blob, $3 the object.
_EMBED = """set -eu
cat >"$3.S" <<END
    .section .rodata
    .balign 64
    .globl spmla_i_cuda_blob
    .type spmla_i_cuda_blob, @object
spmla_i_cuda_blob:
    .incbin "$2"
.Lend:
    .size spmla_i_cuda_blob, .Lend - spmla_i_cuda_blob
    .balign 8
    .globl spmla_i_cuda_blob_bytes
    .type spmla_i_cuda_blob_bytes, @object
    .size spmla_i_cuda_blob_bytes, 8
spmla_i_cuda_blob_bytes:
    .quad .Lend - spmla_i_cuda_blob
    .globl spmla_i_cuda_blob_driver
    .type spmla_i_cuda_blob_driver, @object
    .size spmla_i_cuda_blob_driver, 4
spmla_i_cuda_blob_driver:
    .long $(cat "$2.version") * 1000
    .section .note.GNU-stack,"",@progbits
END
"$1" -c "$3.S" -o "$3"
rm -f "$3.S"
"""

def _cuda_blob_impl(ctx):
    cc = find_cpp_toolchain(ctx)
    source = ctx.file.kernels
    toolkit = ctx.files.toolkit
    blob = ctx.actions.declare_file(ctx.label.name + ".fatbin")
    version = ctx.actions.declare_file(ctx.label.name + ".fatbin.version")
    report = ctx.actions.declare_file(ctx.label.name + ".fatbin.report")
    object = ctx.actions.declare_file(ctx.label.name + ".o")

    includes, headers = [], []
    for dep in ctx.attr.deps:
        context = dep[CcInfo].compilation_context
        headers.append(context.headers)
        for folders in [context.includes, context.system_includes, context.quote_includes]:
            includes += ["-I" + f for f in folders.to_list()]
    ctx.actions.run_shell(
        command = _COMPILE,
        arguments = [
            source.path,
            blob.path,
            toolkit[0].path if toolkit else "",
        ] + includes,
        inputs = depset([source] + toolkit, transitive = headers),
        outputs = [blob, version, report],
        mnemonic = "CudaBlob",
        progress_message = "Compiling kernels for CUDA",
        use_default_shell_env = True,
    )
    ctx.actions.run_shell(
        command = _EMBED,
        arguments = [cc.compiler_executable, blob.path, object.path],
        inputs = depset([blob, version], transitive = [cc.all_files]),
        outputs = [object],
        mnemonic = "CudaBlobObject",
        use_default_shell_env = True,
    )
    return [
        DefaultInfo(files = depset([object])),
        OutputGroupInfo(fatbin = depset([blob]), report = depset([report])),
    ]

cuda_blob = rule(
    implementation = _cuda_blob_impl,
    attrs = {
        "deps": attr.label_list(
            doc = "What the kernels include.",
            providers = [CcInfo],
        ),
        "kernels": attr.label(
            doc = "The one source.",
            mandatory = True,
            allow_single_file = True,
        ),
        "toolkit": attr.label(
            doc = "nvcc as one file, or no file.",
            mandatory = True,
            allow_files = True,
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
