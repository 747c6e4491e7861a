"""Test programs written with Check: one a suite, or many in one."""

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

def gpu_suites(name, srcs):
    """One program of many suites, for a machine with a device.

    `NAME SUITE` runs the suite of that source, "ops/select/test_topk", `NAME --list`
    lists them. It is linked with all that a bare machine lacks.

    Args:
      name: the target.
      srcs: the suites.
    """
    cc_library(
        name = name + "_suites",
        testonly = True,
        srcs = srcs,
        copts = TEST_COPTS,
        linkstatic = True,
        alwayslink = True,
        deps = [
            "//:spmla",
            "//:internal_headers",
            "//:platform_headers",
            "//tests:support",
            "@libcheck",
        ],
    )
    cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-s"],
        linkstatic = True,
        deps = [
            "@libcheck//:libcheck_static",
            ":%s_suites" % name,
            "//tests:cuda_world",
        ],
    )

def check_test(name, srcs, deps = [], data = [], **kw):
    """A cc_test linked with Check, the library and the tests' support code.

    Args:
      name: the target.
      srcs: the program.
      deps: more libraries than every test has.
      data: files to read at run time, found by their path from the root.
      **kw: as for cc_test.
    """
    cc_test(
        name = name,
        srcs = srcs,
        copts = TEST_COPTS + kw.pop("copts", []),
        data = data,
        # A forked case hides a leak or a crash from ASan.
        env = dict(kw.pop("env", {}), CK_FORK = "no"),
        linkstatic = True,
        deps = deps + [
            "//:spmla",
            "//:internal_headers",
            "//:platform_headers",
            "//tests:support",
            "@libcheck",
        ],
        **kw
    )

def variant_test(name, of, env):
    """The program of a check_test with other variables.

    Args:
      name: the target.
      of: the check_test.
      env: variables.
    """
    native.sh_test(
        name = name,
        srcs = ["variant.sh"],
        args = ["%s=%s" % item for item in env.items()] + ["$(rootpath :%s)" % of],
        data = [":" + of],
    )
