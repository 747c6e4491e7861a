"""The structures of _native.py agree with the headers."""

import ctypes
import os
import shutil
import subprocess

import pytest

from spmla import _native

from conftest import ROOT


def _of_c(folder):
    include = folder / "include/spmla"
    include.mkdir(parents=True)
    (include / "ops").symlink_to(ROOT / "lib/ops")
    for header in (ROOT / "lib").glob("*.h"):
        (include / header.name).symlink_to(header)
    lines = []
    for name, kind in _native.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in kind._fields_:
            lines.append(
                f'printf("{name}.{field} %zu\\n",'
                f" offsetof({name}, {field}));"
            )
    (folder / "sizes.c").write_text(
        '#include "spmla/ops/ops.h"\n#include "spmla/v32.h"\n'
        '#include "spmla/prefill_plan.h"\n'
        "#include <stdio.h>\n#include <stddef.h>\n"
        "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
    )
    subprocess.run(
        [
            os.environ.get("CC", "gcc"),
            "-I",
            folder / "include",
            folder / "sizes.c",
            "-o",
            folder / "sizes",
        ],
        check=True,
    )
    out = subprocess.run([folder / "sizes"], check=True, stdout=subprocess.PIPE)
    return dict(line.split() for line in out.stdout.decode().splitlines())


@pytest.mark.skipif(
    not shutil.which(os.environ.get("CC", "gcc")),
    reason="SKIPPED: no C compiler",
)
def test_sizes_and_offsets_are_those_of_the_compiler(tmp_path):
    ours = {}
    for name, kind in _native.STRUCTS.items():
        ours[name] = str(ctypes.sizeof(kind))
        for field, _ in kind._fields_:
            ours[f"{name}.{field}"] = str(getattr(kind, field).offset)
    assert ours == _of_c(tmp_path)
