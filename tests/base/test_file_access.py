"""Files that others made, changed or put in the way: of caches, of shaders' sources and of parameters."""

from __future__ import annotations

import marshal
import os
import signal
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.file_access import create_temporary, delete_abandoned, is_temporary
from kompute_py._compilers.cache import Compiled, ShaderCache
from kompute_py._compilers.libraries import find_library
from kompute_py._files import index as indices
from kompute_py._files import reading
from tests.hostile.files import make_hostile
from tests.support.child import run_child
from tests.support.languages import COMPILERS

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="owners, modes and pipes as POSIX has them"),
]

SOURCE = (
    "#version 450\nlayout(local_size_x = 4) in;\nlayout(set = 0, binding = 0) buffer Data { float data[]; "
    "};\n"
    "void main() { data[gl_GlobalInvocationID.x] += 1.5; }\n"
)


def mode_of(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def computed(mgr) -> list[float]:
    t = mgr.tensor([1.0, 2.0, 3.0, 4.0])
    algorithm = mgr.algorithm([t], kp.compile(SOURCE), (1, 1, 1))
    mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal([t])
    ).eval()
    return list(t.data().tolist())


def everything_below(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): mode_of(path) for path in folder.rglob("*")}


@pytest.fixture
def hanging():
    """Fails a test that waits instead of hanging the suite."""

    def ring(*_):
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


KINDS = [
    "pipe", "folder", "link", "dangling", "endless", "socket", "huge", "unreadable", "writable",
    pytest.param("foreign", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")),
]  # fmt: skip


# -- caches --------------------------------------------------------------------------------------------------


def test_caches_are_the_users_alone(tmp_path, make_manager, monkeypatch):
    before = os.umask(0)
    try:
        monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path / "new" / "shaders"))
        mgr = make_manager(pipeline_cache_dir=tmp_path / "new" / "pipelines")
        computed(mgr)
        mgr.destroy()
    finally:
        os.umask(before)
    found = everything_below(tmp_path)
    assert len(found) >= 5, found  # the folders, an entry, a pipeline cache and its lock
    assert {mode for name, mode in found.items() if (tmp_path / name).is_dir()} == {0o700}
    assert {mode for name, mode in found.items() if not (tmp_path / name).is_dir()} == {0o600}


@pytest.mark.own_driver
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_entry_of_the_shader_cache_is_ignored(tmp_path, monkeypatch, hanging, kind):
    folder = tmp_path / "cache"
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(folder))
    expected = kp.compile(SOURCE)
    (entry,) = folder.iterdir()
    # Were it believed, this would be found: an entry of another shader, which is valid but for where it is.
    lie = kp.compile(SOURCE.replace("1.5", "2.5"))
    (other,) = set(folder.iterdir()) - {entry}
    content = other.read_bytes()
    assert lie != expected
    entry.unlink()
    make_hostile(entry, kind, content)
    for _ in range(2):
        assert kp.compile(SOURCE) == expected
    assert not list(folder.glob("*.tmp"))
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["", ".lock"])
def test_a_hostile_pipeline_cache_is_ignored(tmp_path, make_manager, hanging, kind, suffix):
    folder = tmp_path / "cache"

    def run():
        mgr = make_manager(pipeline_cache_dir=folder)
        assert computed(mgr) == [2.5, 3.5, 4.5, 5.5]
        mgr.destroy()

    run()
    (file,) = folder.glob("*.bin")
    path = Path(f"{file}{suffix}")
    content = path.read_bytes()
    path.unlink()
    make_hostile(path, kind, content)
    run()
    assert not list(folder.glob("*.tmp"))
    assert not (tmp_path / "nothing").exists()


def test_an_entry_under_anothers_name_is_none(tmp_path):
    cache = ShaderCache(str(tmp_path))
    cache.store(b"first", Compiled(b"1", b"", [], []), "<a>")
    os.rename(cache.path(b"first"), cache.path(b"second"))
    assert cache.load(b"second") is None


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "body", [b"", b"\xff" * 9, marshal.dumps(()), marshal.dumps(7), marshal.dumps(("a",))]
)
def test_an_entry_with_a_valid_checksum_and_no_sense_is_none(tmp_path, body):
    from kompute_py._compilers import cache as shader_cache

    cache = ShaderCache(str(tmp_path))
    path = cache.path(b"key")
    Path(path).write_bytes(shader_cache._HEAD + shader_cache._checksum(path, body) + body)
    os.chmod(path, 0o600)
    assert cache.load(b"key") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_another_users_folder_is_not_written_to(tmp_path, monkeypatch, make_manager):
    folder = tmp_path / "cache"
    folder.mkdir(0o777)
    os.chown(folder, 12345, 12345)
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(folder))
    kp.compile(SOURCE)
    mgr = make_manager(pipeline_cache_dir=folder)
    computed(mgr)
    mgr.destroy()
    assert list(folder.iterdir()) == []


def compiles_and_runs_at(home: str, below: str) -> list:
    for name in ("KOMPUTE_PY_SHADER_CACHE_DIR", "KOMPUTE_PY_PIPELINE_CACHE_DIR"):
        os.environ.pop(name, None)
    with kp.Manager() as mgr:
        numbers = computed(mgr)
        print(ascii(str(mgr.config)))
    made = os.listdir(os.path.join(home, below))
    return [numbers, sorted(os.path.splitext(name)[1] for name in made)]


@pytest.mark.parametrize("variable, below", [("HOME", ".cache/kompute_py"), ("XDG_CACHE_HOME", "kompute_py")])
def test_a_home_whose_name_is_no_text_works(tmp_path, variable, below):
    home = os.fsdecode(os.fsencode(tmp_path) + b"/h\xe4\xff")
    os.mkdir(home)
    numbers, suffixes = run_child(
        compiles_and_runs_at, home, below, env={"XDG_CACHE_HOME": ""} | {variable: home}
    )
    assert numbers == [2.5, 3.5, 4.5, 5.5]
    assert suffixes == ["", ".bin", ".lock"]


@pytest.mark.parametrize(
    "name",
    [
        "DEVICE", "VISIBLE_DEVICES", "VALIDATION", "WAIT_MODE", "MEMORY_LIMIT", "DEBUG_LAYERS",
        "REQUIRED_EXTENSIONS",
    ],
)  # fmt: skip
def test_environment_values_that_are_no_text_raise_our_errors(monkeypatch, name):
    monkeypatch.setenv(f"KOMPUTE_PY_{name}", "\udcff\udce4")
    with pytest.raises(kp.InvalidArgumentError, match=f"KOMPUTE_PY_{name}"):
        kp.Manager()


@pytest.mark.parametrize("name", ["SHADER_CACHE_SIZE", "COMPILE_TIMEOUT"])
def test_environment_values_of_the_compiler_that_are_no_text_raise_our_errors(monkeypatch, name, tmp_path):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(f"KOMPUTE_PY_{name}", "\udcff\udce4")
    with pytest.raises(kp.InvalidArgumentError, match=f"KOMPUTE_PY_{name}"):
        kp.compile(SOURCE)


@pytest.mark.parametrize("folder", ["a\0b", "\ud800"])
def test_a_folder_that_no_system_can_spell(folder):
    with pytest.raises(kp.InvalidArgumentError, match="pipeline_cache_dir"):
        kp.Manager(pipeline_cache_dir=folder)


# -- temporary files -----------------------------------------------------------------------------------------


def test_temporary_files_go_with_their_writer(tmp_path):
    descriptor, path = create_temporary(str(tmp_path), "data", 0o600)
    name = os.path.basename(path)
    assert (
        is_temporary(name, "data") and not is_temporary(name, "dat") and not is_temporary("data.tmp", "data")
    )
    (tmp_path / "data.notours.tmp").write_text("")
    delete_abandoned(str(tmp_path), lambda found: is_temporary(found, "data"))
    assert os.path.exists(path)  # a writer has it
    os.close(descriptor)
    delete_abandoned(str(tmp_path), lambda found: is_temporary(found, "data"))
    assert [found.name for found in tmp_path.iterdir()] == ["data.notours.tmp"]


def saves_and_is_killed(path: str) -> None:
    def kill(done, total, name):
        os.kill(os.getpid(), signal.SIGKILL)

    with kp.Manager() as mgr:
        kp.save_tensors(path, {"t": mgr.zeros(3)}, progress=kill)


def test_saving_deletes_what_a_killed_process_left(mgr, tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(AssertionError, match="ended with -9"):
        run_child(saves_and_is_killed, str(path))
    assert len(list(tmp_path.iterdir())) == 1  # the temporary file
    (tmp_path / ".model.safetensors.0123456789ab.tmp.mine").write_text("")
    kp.save_tensors(path, {"t": mgr.zeros(3)})
    assert {found.name for found in tmp_path.iterdir()} == {
        "model.safetensors",
        ".model.safetensors.0123456789ab.tmp.mine",
    }


# -- parameter files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device", "link to a device"])
def test_saving_replaces_only_regular_files(mgr, tmp_path, hanging, kind):
    path = tmp_path / "model.safetensors"
    if kind == "device":
        path = Path("/dev/null")
    elif kind == "link to a device":
        path.symlink_to("/dev/null")
    else:
        make_hostile(path, kind, b"")
    before = os.stat(path)
    with pytest.raises(
        kp.InvalidArgumentError, match=r"not a regular file|is a folder|is a device, a pipe or a socket"
    ):
        kp.save_tensors(path, {"t": mgr.zeros(3)}, format="safetensors")
    assert os.path.samestat(os.stat(path), before)
    assert [found.name for found in tmp_path.iterdir()] == ([] if kind == "device" else ["model.safetensors"])


def test_a_file_has_the_permissions_of_what_it_replaces_from_the_first_byte(mgr, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("old")
    path.chmod(0o600)
    seen = []

    def look(done, total, name):
        seen.extend(mode_of(found) for found in tmp_path.iterdir())

    before = os.umask(0)
    try:
        kp.save_tensors(path, {"t": mgr.zeros(3)}, progress=look)
    finally:
        os.umask(before)
    assert len(seen) >= 2 and set(seen) == {0o600}
    assert mode_of(path) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(mgr, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    kp.save_tensors(path, {"t": mgr.zeros(3)})
    status = path.stat()
    assert (status.st_uid, status.st_gid, mode_of(path)) == (12345, 23456, 0o640)


def test_a_file_that_changes_behind_its_header_is_refused(mgr, tmp_path, monkeypatch):
    """Between the header and the first tensor, too: the numbers would be another file's."""
    path = tmp_path / "p.safetensors"
    kp.save_tensors(path, {"a": mgr.full(8, 1)})
    real = indices.READERS["safetensors"]

    def parse(*given):
        found = real(*given)
        status = path.stat()
        with open(path, "r+b") as file:
            file.seek(-32, os.SEEK_END)
            file.write(bytes(32))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        return found

    monkeypatch.setitem(indices.READERS, "safetensors", parse)
    with pytest.raises(kp.UnavailableError, match="changed the file"):
        kp.load_tensors(path, mgr)


def test_a_path_that_ends_like_a_folders_is_refused(mgr, tmp_path):
    with pytest.raises(kp.InvalidArgumentError, match="folder"):
        kp.save_tensors(f"{tmp_path / 'new'}/", {"a": mgr.zeros(1)})
    assert not list(tmp_path.iterdir())


def test_a_file_that_another_program_changes_is_refused(mgr, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 1 << 16)
    path = tmp_path / "model.safetensors"
    kp.save_tensors(path, {"a": mgr.tensor(np.ones(1 << 18))})
    os.utime(path, (1, 1))

    def change(done, total, name):
        if done == 1 << 17:
            with open(path, "r+b") as file:
                file.seek(-8, os.SEEK_END)
                file.write(bytes(8))

    with pytest.raises(kp.UnavailableError, match="changed the file"):
        kp.load_tensors(path, mgr, progress=change)


def loads_while_it_shrinks(path: str) -> int:
    stop = threading.Event()
    size = os.stat(path).st_size

    def shrink():
        while not stop.is_set():
            os.truncate(path, 4096)
            os.truncate(path, size)

    refused = 0
    with kp.Manager() as mgr:
        thread = threading.Thread(target=shrink)
        thread.start()
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                try:
                    kp.load_tensors(path, mgr, progress=False)["a"].destroy()
                except kp.KomputeError:
                    refused += 1
        finally:
            stop.set()
            thread.join()
    return refused


def test_a_file_that_shrinks_all_the_time_ends_no_process(mgr, tmp_path):
    path = tmp_path / "model.safetensors"
    kp.save_tensors(path, {"a": mgr.tensor(np.ones(1 << 20))})
    assert run_child(loads_while_it_shrinks, str(path)) > 0


# -- sources -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "endless", "dangling"])
@pytest.mark.parametrize("suffix", [".comp", ".spv", ".spvasm"])
def test_only_regular_files_are_sources(mgr, tmp_path, hanging, kind, suffix):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / f"shader{suffix}"
    make_hostile(path, kind, b"")
    uses = [lambda: kp.compile(path), lambda: mgr.kernel(path), lambda: kp.ShaderModule(path)]
    if suffix == ".spv":
        uses.append(lambda: mgr.algorithm([mgr.zeros(1)], path))
    for use in uses:
        with pytest.raises(kp.NotFoundError, match="shader"):
            use()


def test_the_devices_of_the_system_are_no_sources(hanging):
    with pytest.raises(kp.NotFoundError, match="not a regular file"):
        kp.compile(Path("/dev/zero"))


def test_a_source_has_a_size_limit(tmp_path):
    path = tmp_path / "a.comp"
    path.write_text(SOURCE)
    assert kp.compile(path, size_limit=len(SOURCE)) == kp.compile(path)
    with pytest.raises(kp.InvalidArgumentError, match=f"more than {len(SOURCE) - 1} bytes.*size_limit"):
        kp.compile(path, size_limit=len(SOURCE) - 1)
    os.truncate(path, 1 << 40)
    with pytest.raises(kp.InvalidArgumentError, match="size_limit"):
        kp.compile(path)
    for wrong in (1.5, True):
        with pytest.raises(kp.ArgumentTypeError, match="size_limit"):
            kp.compile(path, size_limit=wrong)
    with pytest.raises(kp.InvalidArgumentError, match="size_limit"):
        kp.compile(path, size_limit=-1)


def test_an_include_that_is_a_pipe_is_no_file(tmp_path, hanging, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "value.glsl").write_text("#define VALUE 1.5\n")
    source = SOURCE.replace("1.5", "VALUE").replace("layout(l", '#include "value.glsl"\nlayout(l')
    kp.compile(source, include_dirs=[tmp_path])
    (tmp_path / "value.glsl").unlink()
    os.mkfifo(tmp_path / "value.glsl")
    with pytest.raises(kp.ShaderCompileError, match=r"value\.glsl"):
        kp.compile(source, include_dirs=[tmp_path])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ["nothing", "pipe"])
def test_an_include_of_hlsl_that_is_no_file_is_an_error_of_the_source(tmp_path, hanging, compiler, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / "value.h")
    source = '#include "value.h"\n[numthreads(1, 1, 1)] void main() {}'
    with pytest.raises(kp.ShaderCompileError, match=r"value\.h"):
        kp.compile(source, language="hlsl", compiler=compiler, include_dirs=[tmp_path])


@pytest.mark.parametrize(("kind", "name"), [("slang", "libslang.so"), ("dxc", "libdxcompiler.so")])
def test_a_compilers_library_that_is_a_pipe_is_none(tmp_path, hanging, monkeypatch, kind, name):
    os.mkfifo(tmp_path / name)
    monkeypatch.setenv(f"KOMPUTE_PY_{kind.upper()}_LIBRARY", str(tmp_path / name))
    assert find_library(kind) is None


def opens_a_manager() -> str:
    try:
        kp.Manager()
    except kp.UnavailableError as error:
        return str(error)
    return ""


def test_a_vulkan_library_that_is_a_pipe_is_none(tmp_path):
    os.mkfifo(tmp_path / "libvulkan.so")
    said = run_child(
        opens_a_manager, env={"KOMPUTE_PY_VULKAN_LIBRARY": str(tmp_path / "libvulkan.so")}, timeout=60
    )
    assert "not a regular file" in said
