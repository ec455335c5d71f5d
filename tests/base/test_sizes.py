"""A size in bytes: one grammar in every option, environment variable and argument that takes one."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.settings import GRAMMAR

pytestmark = pytest.mark.own_driver

TAKEN = {
    "128 MiB": 2**27, "128MiB": 2**27, "128mib": 2**27, " 128  MIB ": 2**27, "128M": 2**27, "128 m": 2**27,
    "131072K": 2**27,
    "128MB": 128 * 10**6, "128 mb": 128 * 10**6, "2kB": 2000, "2 GB": 2 * 10**9, "1 TB": 10**12, "1T": 2**40,
    "1 TiB": 2**40,
    "1.5 GiB": 3 * 2**29, "1.5G": 3 * 2**29, ".5 MiB": 2**19, "1. MiB": 2**20, "0.1 GB": 10**8,
    "1.3MiB": 1363148,
    "4194304": 2**22, "4194304 B": 2**22, "4194304bytes": 2**22, "1 Byte": 1, "0": 0, "0 MiB": 0, "0.0": 0,
    "9223372036854775807": 2**63 - 1, "\t7\n": 7,
}  # fmt: skip
REFUSED = (
    "", " ", "MiB", "many", "12 MX", "12 MiBs", "12 Mi", "1,5 GiB", "1_000", "1e6", "-1", "-1 MiB", "+1",
    "0x10", "1 2", "1.2.3", ".", "inf",
    "nan", "1 M iB", "٣", "1 ΜB", "0.5", "0.5 B", "1.5 bytes", "0.0001 KiB", "8 EiB", "9223372036854775808",
    "10000000 TiB", "9" * 5000,
)  # fmt: skip
WRONG_TYPES = (
    1.5, 1e9, np.float64(7), [1], b"12", True, np.bool_(True), object(), np.array([1, 2]), np.timedelta64(5),
    {},
)  # fmt: skip


def by_limit(size):
    return kp.config_report(memory_limit=size).memory_limit.value


def by_block(size):
    return kp.config_report(memory_block_size=size).memory_block_size.value


def by_cache(size):
    return kp.config_report(shader_cache_size=size).shader_cache_size.value


ARGUMENTS = {"memory_limit": by_limit, "memory_block_size": by_block, "shader_cache_size": by_cache}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_an_option_takes(name):
    take = ARGUMENTS[name]
    for given, size in TAKEN.items():
        if name == "memory_block_size" and size < 2**20:
            with pytest.raises(kp.InvalidArgumentError, match="at least"):
                take(given)
        else:
            assert take(given) == size, given
            assert type(take(given)) is int
    for given, size in ((0, 0), (2**30, 2**30), (np.int64(2**22), 2**22), (np.uint8(200), 200)):
        if name != "memory_block_size" or size >= 2**20:
            assert take(given) == size


@pytest.mark.parametrize("name", [*ARGUMENTS, "size_limit"])
def test_what_is_refused(name, tmp_path):
    def take(size):
        if name == "size_limit":
            return kp.compile("void main() {}", size_limit=size)
        return ARGUMENTS[name](size)

    for given in REFUSED:
        with pytest.raises(kp.InvalidArgumentError) as caught:
            take(given)
        assert name in str(caught.value) and GRAMMAR in str(caught.value), given
    for given in (-1, 2**63, np.int64(-5)):
        with pytest.raises(kp.InvalidArgumentError) as caught:
            take(given)
        assert name in str(caught.value) and GRAMMAR in str(caught.value)
    for given in WRONG_TYPES:
        with pytest.raises(kp.ArgumentTypeError) as caught:
            take(given)
        assert name in str(caught.value) and GRAMMAR in str(caught.value)


def test_the_largest_source(tmp_path):
    file = tmp_path / "long.comp"
    source = (
        "#version 450\n"
        "layout(local_size_x = 1) in;\n"
        "layout(binding = 0) buffer A { float a[]; };\n"
        "void main() { a[0] = 1.0; }\n"
    )
    file.write_text(source.ljust(1500))
    spirv = kp.compile(file)
    for enough in ("1.5 KiB", "1500", "1.5kB", "2K", 1500, np.int32(1500)):
        assert kp.compile(file, size_limit=enough) == spirv
    for little in ("1 KiB", "1499", "1.4kB", 1499, "0"):
        with pytest.raises(kp.InvalidArgumentError, match="more than"):
            kp.compile(file, size_limit=little)


@pytest.mark.parametrize("prefix", ["KOMPUTE_PY_", "PROGRAM_"])
def test_variables(prefix, monkeypatch):
    for name in ARGUMENTS:
        variable = prefix + name.upper()
        for given in ("128 MiB", "128MB", "1.5 GiB", "128M", " 64mib "):
            monkeypatch.setenv(variable, given)
            found = getattr(kp.config_report(env_prefix=prefix), name)
            assert (found.value, found.source) == (TAKEN.get(given, 2**26), variable)
        monkeypatch.setenv(variable, "12 MX")
        with pytest.raises(kp.InvalidArgumentError) as caught:
            kp.config_report(env_prefix=prefix)
        assert f"The environment variable {variable} is '12 MX'" in str(caught.value) and GRAMMAR in str(
            caught.value
        )
        monkeypatch.delenv(variable)
