"""Test programs written with Check, of many suites each."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# Tests may use GNU extensions, and as the library they never contract a*b+c.
TEST_COPTS = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Wmissing-prototypes",
]

# What cuda_memory.c takes over.
CUDA_WORLD_WRAPS = ["-Wl,--wrap=" + f for f in [
    "aligned_alloc",
    "calloc",
    "free",
    "main",
    "malloc",
    "mmap",
    "munmap",
    "posix_memalign",
    "realloc",
]]

# What every suite needs.
_SUITE_DEPS = [
    "//:spmla",
    "//:internal_headers",
    "//:platform_headers",
    "//tests:support",
    "@libcheck",
]

def suites(name, srcs, long = []):
    """A program of many suites, NAME_suites, and the test NAME of all on the CPU.

    `bazel run //tests:NAME_suites -- [--list] [SUITE..]` lists them or runs some:
    the suite of ops/select/test_topk.c is "ops/select/test_topk".

    Args:
      name: the test.
      srcs: a source a suite.
      long: of these, see suite_variants.
    """
    cc_library(
        name = name + "_suites_lib",
        testonly = True,
        srcs = srcs,
        # What takes time is elsewhere; -O2 takes twice as long to compile.
        copts = TEST_COPTS + ["-O1"],
        linkstatic = True,
        alwayslink = True,
        deps = _SUITE_DEPS,
    )
    cc_binary(
        name = name + "_suites",
        testonly = True,
        linkstatic = True,
        deps = [":%s_suites_lib" % name],
    )
    suite_variants("", {name: srcs}, srcs, {}, long = long)

def _suite_test(name, of, srcs, env, tags, shards = None):
    native.sh_test(
        name = name,
        size = "large",
        srcs = ["variant.sh"],
        args = ["%s=%s" % item for item in env.items()] +
               ["$(rootpath :%s_suites)" % of] +
               [src[:-len(".c")] for src in srcs],
        data = [":%s_suites" % of],
        shard_count = shards,
        tags = tags,
    )

def suite_variants(suffix, of, srcs, env, tags = [], shards = {}, long = []):
    """Suites with some variables: a test NAME + suffix a program.

    Args:
      suffix: of the tests.
      of: the sources of each program, by its name.
      srcs: those that run.
      env: the variables.
      tags: of the tests.
      shards: of the tests that run long, by program.
      long: suites in which sanitizers see no more than in others. A test NAME +
        suffix + "_long" has them, and sanitizers leave it out.
    """
    for name, all in of.items():
        chosen = [src for src in all if src in srcs]
        short = [
            src
            for src in chosen
            if src not in long or "noasan" in tags
        ]
        if short:
            _suite_test(
                name + suffix,
                name,
                short,
                env,
                tags,
                shards.get(name),
            )
        if len(short) < len(chosen):
            _suite_test(
                name + suffix + "_long",
                name,
                [src for src in chosen if src not in short],
                env,
                ["noasan"],
            )

def gpu_suites(name, of):
    """The suites that a device can run as one program, for a bare machine.

    It is linked with all that such a machine lacks.

    Args:
      name: the target.
      of: the programs whose suites they are.
    """
    cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-s"],
        linkstatic = True,
        deps = ["@libcheck//:libcheck_static"] +
               [":%s_suites_lib" % program for program in of] +
               ["//tests:cuda_world"],
    )

def suite_program(name, srcs, data = [], linkopts = []):
    """A suite with a program of its own.

    Args:
      name: the test.
      srcs: the suite.
      data: files to read at run time, found by their path from the root.
      linkopts: what sets it apart.
    """
    cc_test(
        name = name,
        srcs = srcs,
        copts = TEST_COPTS,
        data = data,
        # A forked case hides a leak or a crash from ASan.
        env = {"CK_FORK": "no"},
        linkopts = linkopts,
        linkstatic = True,
        deps = _SUITE_DEPS,
    )
