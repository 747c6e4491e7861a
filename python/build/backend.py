"""Makes the wheel: `make`, then libspmla.so beside the modules of
python/spmla.

Needs only Python, make and a C compiler. SPMLA_MAKE is appended to make's
command line: SPMLA_MAKE="CUDA=0" leaves out the CUDA kernels, which take some
minutes; NVCC=FILE names their compiler.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sysconfig
import tempfile
import zipfile

_ROOT = pathlib.Path(__file__).absolute().parents[2]

# The rest of the metadata, which pyproject.toml says too.
_METADATA = """Metadata-Version: 2.1
Name: spmla
Version: {version}
Summary: DeepSeek sparse attention for engines that replay captured graphs
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: numpy
Description-Content-Type: text/markdown

{readme}"""

_WHEEL = """Wheel-Version: 1.0
Generator: spmla
Root-Is-Purelib: false
Tag: {tag}
"""


def _version() -> str:
    header = (_ROOT / "lib/spmla.h").read_text()
    return ".".join(
        re.search(rf"^#define SPMLA_VERSION_{part} (\d+)$", header,
                  re.M).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def _library(folder: str) -> bytes:
    more = shlex.split(os.environ.get("SPMLA_MAKE", ""))
    subprocess.run(["make", "-s", "-C", _ROOT, f"-j{os.cpu_count()}",
                    f"BUILD={folder}", *more], check=True)
    built = [word[6:] for word in more if word.startswith("BUILD=")]
    return (_ROOT / (built[-1] if built else folder) /
            "libspmla.so").read_bytes()


def _metadata() -> str:
    return _METADATA.format(version=_version(),
                            readme=(_ROOT / "python/README.md").read_text())


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tag = f"py3-none-{platform}"
    info = f"spmla-{version}.dist-info"
    with tempfile.TemporaryDirectory() as folder:
        files = {"spmla/libspmla.so": _library(folder)}
    for path in sorted((_ROOT / "python/spmla").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            files[f"spmla/{path.name}"] = path.read_bytes()
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = _WHEEL.format(tag=tag).encode()
    files[f"{info}/licenses/LICENSE"] = (_ROOT / "LICENSE").read_bytes()
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        text = digest.decode().rstrip("=")
        record.append(f"{name},sha256={text},{len(data)}")
    record.append(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = "\n".join(record).encode()
    wheel = f"spmla-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w",
                         zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # One date, so that the same tree gives the same wheel.
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return wheel
