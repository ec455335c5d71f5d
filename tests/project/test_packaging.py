"""The package as an index shows it, and a build's message about missing packages of the system.

`./dev wheel` builds wheels and tries them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from email import message_from_string
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
# A picture may be the text of a link.
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
EXTRAS = {
    "all", "cli", "demo", "dask", "dev", "examples", "hlsl", "lint", "notebook", "plot", "show", "slang",
    "test", "torch", "video", "wheel",
}  # fmt: skip

pytestmark = pytest.mark.own_driver


@pytest.fixture(scope="module")
def package():
    # Not metadata.metadata: a newer importlib_metadata, which other packages bring, takes its place.
    return message_from_string(metadata.distribution("kompute-py").read_text("METADATA"))


def code_of(text):
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)


def outside_code(text):
    for block in code_of(text):
        text = text.replace(block, "")
    return text


def test_a_wheel_has_the_packages_and_no_strange_files(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import wheels

    packages = [path.parent.name for path in ROOT.glob("kompute_py*/__init__.py")]
    assert len(packages) == 3
    ours = [f"{package}/__init__.py" for package in packages]
    ours += ["kompute_py-0.1.0.dist-info/RECORD", "kompute_py/"]
    ours += ["kompute_py-0.1.0.data/data/share/jupyter/labextensions/kompute-py/package.json"]
    others = ["tests/__init__.py", "kompute_pyx/a.py", "kompute_py.libs/libz.so"]
    assert wheels.strange_files([*ours, *others]) == others


# -- the metadata --------------------------------------------------------------------------------------------


def test_licences(package):
    assert package["License-Expression"] == "Apache-2.0" and package["License"] is None
    assert package.get_all("License-File") == ["LICENSE", "THIRD_PARTY_LICENSES.txt"]
    assert not [each for each in package.get_all("Classifier") if each.startswith("License ::")]  # PEP 639
    for name in package.get_all("License-File"):
        installed = metadata.distribution("kompute-py").read_text(f"licenses/{name}")
        assert installed == (ROOT / name).read_text()


# The projects that the module is linked with, or compiled from, by the package of the system.
PROJECTS = {
    "libvulkan-dev": "Vulkan-Headers", "libvulkan-volk-dev": "volk", "libshaderc-dev": "shaderc",
    "glslang-dev": "glslang", "spirv-tools": "SPIRV-Tools", "spirv-headers": "SPIRV-Headers",
    "libspirv-cross-c-shared-dev": "SPIRV-Cross",
}  # fmt: skip
TOOLS = {"g++", "cmake", "ninja-build", "glslang-tools", "libvulkan1"}


def build_needs():
    lines = (ROOT / "tools" / "dev" / "build_needs.txt").read_text().splitlines()
    return [line.split("|") for line in lines if not line.startswith("#")]


def test_every_linked_library_has_its_licence():
    text = (ROOT / "THIRD_PARTY_LICENSES.txt").read_text()
    headings = re.findall(r"^={90,}\n(\S+) +https://", text, re.MULTILINE)
    assert sorted(headings) == sorted([*PROJECTS.values(), "pybind11"])
    assert {need[0] for need in build_needs()} == TOOLS | set(PROJECTS)


def test_pythons(package):
    classifiers = package.get_all("Classifier")
    for minor in range(10, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    assert package["Requires-Python"] == ">=3.10" and package["Author"]


def test_extras(package):
    assert set(package.get_all("Provides-Extra")) >= EXTRAS
    for requirement in package.get_all("Requires-Dist"):
        for own in re.findall(r"^kompute-py\[([^\]]*)\]", requirement):
            assert set(own.split(",")) <= set(package.get_all("Provides-Extra"))
    documented = (ROOT / "docs" / "inside" / "packaging.md").read_text()
    for extra in EXTRAS:
        assert f"`{extra}`" in documented, extra
    install = (ROOT / "docs" / "start" / "install.md").read_text()
    (wanted,) = re.findall(r"^all = (.*)$", PYPROJECT, re.MULTILINE)
    for extra in ",".join(re.findall(r"kompute-py\[([^\]]*)\]", wanted)).split(","):
        assert f"| `{extra}` |" in install, extra


# -- the page ------------------------------------------------------------------------------------------------


def test_the_page_has_no_link_that_leads_nowhere(package):
    assert package["Description-Content-Type"] == "text/markdown"
    # The installed page may be of an older README.md.
    assert package.get_payload().startswith("# kompute_py\n")
    page = readme = (ROOT / "README.md").read_text()
    rules = re.findall(r"^pattern = '(.*)'\nreplacement = ['\"](.*)['\"]$", PYPROJECT, re.MULTILINE)
    assert len(rules) == 3
    for pattern, replacement in rules:
        page = re.sub(pattern, replacement, page)
    assert code_of(page) == code_of(readme) and len(code_of(page)) > 3
    links = LINK.findall(outside_code(page))
    assert links and all(link.startswith(("https://", "#")) for link in links), links
    assert not PICTURE.findall(outside_code(page))
    # Nothing but links and pictures is lost.
    for heading in re.findall(r"^#+ .*$", outside_code(readme), re.MULTILINE):
        assert heading in page
    for text in re.findall(r"(?<!\|) !?\[([^\]]*)\]\([^)\s]+\)", outside_code(readme)):
        assert text in page
    assert "contact sheet, on a machine" not in page  # the caption of the picture


def test_the_page_once_there_is_an_address():
    readme = (ROOT / "README.md").read_text()
    rules = re.findall(r"^#   '(.*)'  ->  '(.*)'$", PYPROJECT, re.MULTILINE)
    assert len(rules) == 2
    page = readme
    for pattern, replacement in rules:
        page = re.sub(pattern, replacement, page)
    assert code_of(page) == code_of(readme)
    before, after = (LINK.findall(outside_code(text)) for text in (readme, page))
    assert len(before) == len(after) > 10
    pictures = PICTURE.findall(readme)
    assert pictures
    for old, new in zip(before, after, strict=True):
        if old.startswith(("https://", "#")):
            assert new == old
        else:
            kind = "raw" if old in pictures else "blob"
            assert new == f"https://ADDRESS/{kind}/main/{old}"
            assert (ROOT / old.partition("#")[0]).exists()


def test_the_readme_names_the_packages_of_the_one_list():
    readme = (ROOT / "README.md").read_text()
    listed = (ROOT / "tools" / "dev" / "other_systems.txt").read_text()
    for system, names in re.findall(r"^\| (Fedora|Arch|macOS) \|[^`]*`([^`]*)`", readme, re.MULTILINE):
        (commands,) = re.findall(rf"^On {system}[,:].*\n((?:.*\n)*?)(?:system:|\Z)", listed, re.MULTILINE)
        assert set(names.split()) <= set(commands.split()), system
    assert len(re.findall(r"^\| (Fedora|Arch|macOS) \|", readme, re.MULTILINE)) == 3


# -- packages of the system ----------------------------------------------------------------------------------


def configure(tmp_path, *options):
    cmake, ninja = shutil.which("cmake"), shutil.which("ninja")
    if not (cmake and ninja):
        pytest.skip("needs CMake and Ninja")
    ran = subprocess.run(
        [
            cmake, "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={ninja}", *options,
        ],
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    return ran.returncode, ran.stderr


def test_a_build_names_all_missing_packages_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    bare = tmp_path / "bare"
    bare.mkdir()
    bare_machine = (
        f"-DCMAKE_FIND_ROOT_PATH={bare}",
        "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
        "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY",
    )
    status, text = configure(tmp_path, *bare_machine)
    assert status != 0
    # CMake runs; it was told of Ninja; the loader is for the run time.
    expected = [need for need in build_needs() if need[0] not in ("cmake", "ninja-build", "libvulkan1")]
    assert re.findall(r"^    (\S+): (.*)$", text, re.MULTILINE) == [(need[0], need[2]) for need in expected]
    assert "CMAKE_CXX_COMPILER" not in text
    # A compiler that is named, but not there, is as good as none: scikit-build-core names one.
    monkeypatch.setenv("CXX", "g++ -pthread")
    assert "    g++: the C++20 compiler\n" in configure(tmp_path, *bare_machine)[1]
    if shutil.which("apt-get"):
        command = " ".join(need[0] for need in expected)
        assert f"apt-get update && apt-get install -y --no-install-recommends {command}\n" in text


def test_a_build_names_only_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    include = tmp_path / "bare" / "include"
    for _, sign, _ in build_needs():
        kind, *names = sign.split()
        if kind == "header" and names[0] != "volk.h":
            (include / names[0]).parent.mkdir(parents=True, exist_ok=True)
            (include / names[0]).touch()
    status, text = configure(
        tmp_path, f"-DCMAKE_FIND_ROOT_PATH={tmp_path / 'bare'}", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
        f"-DCMAKE_PREFIX_PATH={tmp_path / 'bare'}",
    )  # fmt: skip
    assert status != 0
    assert re.findall(r"^    (\S+): ", text, re.MULTILINE) == ["libvulkan-volk-dev"]
