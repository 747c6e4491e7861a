"""check_test: a test program written with Check."""

load("@rules_cc//cc:defs.bzl", "cc_test")

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
