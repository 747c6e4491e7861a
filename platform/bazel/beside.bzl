"""Test data that may lie beside a checkout, in ../shared.

@beside//:golden and @beside//:trace hold every file below ../shared/golden and
../shared/trace, and nothing where there is no such folder; so a test may name
them as data on a plain clone too. The links are made whether or not they lead
anywhere: Bazel looks behind them at each build, and a folder that comes or goes
is seen at once. Tests find the files in ../beside/golden and ../beside/trace.
"""

_FOLDERS = ["golden", "trace"]

_BUILD = """
filegroup(
    name = "{folder}",
    srcs = glob(["{folder}/**"], allow_empty = True),
    visibility = ["//visibility:public"],
)
"""

def _beside_impl(ctx):
    parent = ctx.path(Label("//:WORKSPACE")).dirname.dirname
    for folder in _FOLDERS:
        ctx.symlink("%s/shared/%s" % (parent, folder), folder)
    ctx.file(
        "BUILD.bazel",
        "".join([_BUILD.format(folder = folder) for folder in _FOLDERS]),
    )

beside = repository_rule(
    implementation = _beside_impl,
    local = True,
)
