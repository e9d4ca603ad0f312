"""Packs wheels from a build: python make_wheel.py BUILD OUT [PYTHON…] [--level N]; `./dev wheel` calls it.

A wheel holds the package, the module for one Python, the library with its backends, the program plait,
the headers, and the libraries that a bare system lacks: oneDNN, libgomp, libzip and what these load.
libLLVM stays the system's. A second wheel, plait_compile, is the same for every Python: what `plait
compile` links programs with, which is as large as all else.

Nothing is compiled here: the files are those of BUILD, stripped, with run paths inside the package.

SPDX-License-Identifier: Apache-2.0
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME = (2020, 1, 1, 0, 0, 0)  # of every file: equal builds make equal wheels
# What every system has that the tag admits (PEP 600), and what is loaded by name: libz is Python's too.
SYSTEM = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64)\.so"
)
LOADED = ("libgomp.so.1", "libzip.so.5", "libzip.so.4")
# plait asks for these by name. What they need in turn gets a name of its own, since another version
# of it may be in the process, such as that of Python's ssl.
BY_NAME = re.compile(r"lib(gomp|zip|dnnl)\.so")
# GCC's libraries by what they promise: the oldest glibc beside which distributions have them.
PROMISES = (
    ("GLIBCXX", (3, 4, 30), 35), ("GLIBCXX", (3, 4, 32), 38), ("GLIBCXX", (3, 4, 33), 39),
    ("CXXABI", (1, 3, 13), 34), ("CXXABI", (1, 3, 14), 38), ("CXXABI", (1, 3, 15), 39),
)  # fmt: skip


def output_of(*command):
    return subprocess.check_output([str(word) for word in command], text=True)


def needed_by(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", path))


def versions_of(path):
    """{"GLIBC": (2, 38), …}: the newest versions that a file needs of the system's libraries."""
    found = {}
    for name, text in re.findall(
        r"Name: (GLIBC|GLIBCXX|CXXABI)_([\d.]+) ", output_of("readelf", "-V", path)
    ):
        version = tuple(int(part) for part in text.split("."))
        found[name] = max(found.get(name, ()), version)
    return found


def glibc_for(paths):
    """The minor version of the oldest glibc with which these files load, by what GCC came with it too."""
    least = 17
    for path in paths:
        versions = versions_of(path)
        least = max(least, versions.get("GLIBC", (2, 17))[1])
        for name, version, minor in PROMISES:
            if versions.get(name, ()) >= version:
                least = max(least, minor)
        newest = {name: max(v for n, v, _ in PROMISES if n == name) for name, _, _ in PROMISES}
        for name, version in newest.items():
            if versions.get(name, ()) > version:
                raise SystemExit(f"{path} needs {name} {version}: no glibc is known to have it")
    return least


def system_libraries():
    """{name: path} of the loader's cache."""
    lines = output_of("/sbin/ldconfig", "-p")
    return dict(reversed(re.findall(r"^\s+(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", lines, re.M)))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def patch(path, *arguments):
    subprocess.check_call(["patchelf", *arguments, str(path)])


def stage_package(build, stage):
    """The package without its module, as `pip install .` lays it out: (folder of plait, of archives)."""
    prefix = stage / "prefix"
    meson = [shutil.which("meson"), "install", "-C", build, "--no-rebuild", "--destdir", prefix]
    subprocess.run(meson, check=True, stdout=subprocess.PIPE)
    library = next(prefix.rglob("libplait.so.*.*.*"))
    package, archives = stage / "plait", stage / "archives"
    source = ROOT / "python" / "plait"
    for path in source.rglob("*"):  # what an installation has (python/meson.build)
        is_info = path.parent.name.endswith(".dist-info")
        if path.suffix in (".py", ".pyi") or path.name == "py.typed" or is_info:
            copied = package / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copied)
    (package / "lib" / "plait" / "backends").mkdir(parents=True)
    (archives / "plait" / "lib").mkdir(parents=True)
    shutil.copy(library, package / "lib" / "libplait.so")  # a wheel holds no links
    for module in library.parent.glob("plait/backends/*.so"):
        shutil.copy(module, package / "lib" / "plait" / "backends")
    for archive in library.parent.glob("libplait_run*.a"):
        shutil.copy(archive, archives / "plait" / "lib")
    shutil.copytree(next(prefix.rglob("include/plait")), package / "include" / "plait")
    cmake = package / "lib" / "cmake" / "plait"
    cmake.mkdir(parents=True)
    for name in ("plait-config.cmake", "plait-config-version.cmake"):
        text = next(prefix.rglob(name)).read_text()
        headers = r'(plait_INCLUDE_DIR "\$\{CMAKE_CURRENT_LIST_DIR\}/)[^"]+'
        (cmake / name).write_text(re.sub(headers, r"\1../../../include", text))
    (package / "bin").mkdir()
    shutil.copy(next(prefix.rglob("bin/plait")), package / "bin" / "plait")
    shutil.rmtree(prefix)
    return package, archives


def add_libraries(package, licences):
    """Copies what a bare system lacks beside libplait.so, and the terms of each beside the licence."""
    library, known = package / "lib", system_libraries()
    backends = list((library / "plait" / "backends").glob("*.so"))
    loaded = next(filter(known.get, LOADED[1:]), None)
    wanted = {LOADED[0], loaded} | {name for path in backends for name in needed_by(path)}
    wanted = [name for name in wanted if name and not name.startswith("libplait.")]
    names = {}  # of the system: ours
    while wanted:
        name = wanted.pop()
        if SYSTEM.match(name) or name in names:
            continue
        if name not in known:
            raise SystemExit(f"{name}, which the wheel has to hold, is not installed")
        names[name] = name if BY_NAME.match(name) else name.replace(".so", "-plait.so", 1)
        shutil.copy(os.path.realpath(known[name]), library / names[name])
        copy_terms(known[name], licences)
        wanted += needed_by(library / names[name])
    for name, own in names.items():
        path = library / own
        path.chmod(0o755)
        arguments = ["--set-rpath", "$ORIGIN"] + (["--set-soname", own] if own != name else [])
        for other in needed_by(path):
            if names.get(other, other) != other:
                arguments += ["--replace-needed", other, names[other]]
        patch(path, *arguments)
    return names


def copy_terms(path, licences):
    """The file in which the system's package states its terms."""
    real = os.path.realpath(path)  # dpkg may know it without the /usr
    command = ["dpkg", "-S", real, real.removeprefix("/usr")]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if not found.stdout:
        raise SystemExit(f"{path} is of no package of the system, so its terms are not known")
    owner = found.stdout.partition(":")[0]
    terms = pathlib.Path("/usr/share/doc") / owner / "copyright"
    licences.mkdir(parents=True, exist_ok=True)
    shutil.copy(terms, licences / f"{owner}.txt")


def finish(package):
    """Names and run paths inside the package, and no symbols but those that are loaded."""
    library = package / "lib"
    # The names of parts that programs find by the loader; an installation names them by version.
    soname = output_of("patchelf", "--print-soname", library / "libplait.so").strip()
    patch(library / "libplait.so", "--set-soname", "libplait.so", "--set-rpath", "$ORIGIN")
    for path in [*(library / "plait" / "backends").glob("*.so"), package / "bin" / "plait"]:
        rpath = "$ORIGIN/" + os.path.relpath(library, path.parent)
        patch(path, "--replace-needed", soname, "libplait.so", "--set-rpath", rpath)
    return soname


def strip(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and is_elf(path)]
    for path in paths:
        subprocess.check_call(["strip", "--strip-unneeded", path])
    return paths


def hash_of(data):
    digest = hashlib.sha256(data).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def write_wheel(out, name, tag, files, metadata, others, level):
    """A wheel of files, {name in it: path}, and of others, {name in its .dist-info: text or bytes}."""
    pure = f"{name}-{metadata.version}"
    info = f"{pure}.dist-info/"
    texts = {"METADATA": bytes(metadata.as_rfc822()), **others}
    texts["WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: plait {metadata.version}\n"
        f"Root-Is-Purelib: false\nTag: {tag}\n"
    )
    record = []
    path = out / f"{pure}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as wheel:

        def add(inside, data, mode=0o644):
            entry = zipfile.ZipInfo(inside, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            record.append(f"{inside},{hash_of(data)},{len(data)}")

        for inside, source in sorted(files.items()):
            is_program = os.access(source, os.X_OK)
            add(inside, source.read_bytes(), 0o755 if is_program else 0o644)
        for inside, text in sorted(texts.items()):
            add(info + inside, text.encode() if isinstance(text, str) else text)
        add_record = zipfile.ZipInfo(info + "RECORD", TIME)
        add_record.external_attr = 0o100644 << 16
        wheel.writestr(add_record, "\n".join([*record, f"{info}RECORD,,", ""]))
    return path


def metadata_of(version):
    """(of plait, of plait_compile), from pyproject.toml."""
    from pyproject_metadata import StandardMetadata

    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = table["project"]
    project["dynamic"] = []
    project["version"] = version
    extras = project["optional-dependencies"]
    extras["compile"] = [f"plait-compile=={version}"]
    plait = StandardMetadata.from_pyproject(table, ROOT)
    compile = {
        "name": "plait-compile",
        "version": version,
        "description": "What `plait compile` links programs with: the part of plait that they run in",
        "license": project["license"],
        "license-files": project["license-files"],
        "requires-python": project["requires-python"],
        "dependencies": [f"plait=={version}"],
    }
    return plait, StandardMetadata.from_pyproject({"project": compile}, ROOT)


def interpreter_of(python):
    """("cp313", the end of its modules' names)."""
    text = output_of(
        python, "-c", "import sys, sysconfig; "
        "print('cp%d%d' % sys.version_info[:2], sysconfig.get_config_var('EXT_SUFFIX'))"
    )  # fmt: skip
    return text.split()


def files_below(folder, prefix):
    return {
        f"{prefix}/{path.relative_to(folder)}": path for path in folder.rglob("*") if path.is_file()
    }


def make(build, out, pythons, level=9):
    """The wheels of plait for these interpreters, whose modules are built, and that of plait_compile."""
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    plait_metadata, compile_metadata = metadata_of(version)
    out.mkdir(parents=True, exist_ok=True)
    wheels = []
    with tempfile.TemporaryDirectory() as stage:
        stage = pathlib.Path(stage)
        package, archives = stage_package(build, stage)
        licences = stage / "licences"
        add_libraries(package, licences)
        soname = finish(package)
        binaries = strip(package)
        own = {"licenses/LICENSE": (ROOT / "LICENSE").read_bytes()}
        terms = {f"licenses/{path.name}": path.read_bytes() for path in licences.iterdir()}
        commands = {"entry_points.txt": "[console_scripts]\nplait = plait.__main__:main\n"}
        for python in pythons:
            short, suffix = interpreter_of(python)
            module = stage / ("_plait" + suffix)
            shutil.copy(build / "python" / module.name, module)
            patch(module, "--replace-needed", soname, "libplait.so", "--set-rpath", "$ORIGIN/lib")
            subprocess.check_call(["strip", "--strip-unneeded", module])
            tag = f"{short}-{short}-manylinux_2_{glibc_for([*binaries, module])}_x86_64"
            files = {**files_below(package, "plait"), f"plait/{module.name}": module}
            others = {**own, **terms, **commands}
            wheels.append(write_wheel(out, "plait", tag, files, plait_metadata, others, level))
        files = files_below(archives / "plait", "plait")
        tag = f"py3-none-manylinux_2_{glibc_for(binaries)}_x86_64"
        wheels.append(write_wheel(out, "plait_compile", tag, files, compile_metadata, own, level))
    return wheels


def main():
    arguments, level = sys.argv[1:], 9
    if "--level" in arguments:
        at = arguments.index("--level")
        level = int(arguments[at + 1])
        del arguments[at : at + 2]
    build, out, *pythons = arguments
    for path in make(pathlib.Path(build), pathlib.Path(out), pythons or [sys.executable], level):
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
