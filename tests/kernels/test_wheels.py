"""The libraries in build/libraries export what each system needs, and import nothing else."""

from collections.abc import Iterable
from pathlib import Path

import lief
import pytest

from sparseeinsum.environment.assets import ROOT
from sparseeinsum.kernels.libraries import DUCKDB_FILE, postgresql_file
from sparseeinsum.kernels.platforms import PLATFORMS
from sparseeinsum.kernels.postgresql.linking_names import MAJORS
from sparseeinsum.kernels.symbols import EXPORTED_TO_DUCKDB

LIBRARIES = ROOT / "build" / "libraries"
BUILT = [name for name in PLATFORMS if (LIBRARIES / name).is_dir()]

# Functions of C, and further ones of each system.
C = set(
    """acos acosf asin asinf asinh atan atan2 atanf calloc cos cosf cosh coshf exp free getenv hypot log log1p malloc
    memcmp memcpy memmove memset pow powf sin sinf sinh sinhf strcmp strtod tan tanf""".split()  # noqa: SIM905
)
POSIX = {
    *("getentropy", "sysconf", "pthread_create", "pthread_join", "pthread_mutex_lock", "pthread_mutex_unlock"),
}
OWN = {
    "linux": POSIX | {"madvise", "sincos", "sincosf"},
    "darwin": POSIX | {"__bzero", "__sincos_stret", "__sincosf_stret", "bzero", "dyld_stub_binder", "memset_pattern16"},
    "win32": {
        *("AcquireSRWLockExclusive", "GetPhysicallyInstalledSystemMemory", "ReleaseSRWLockExclusive"),
        *("CloseHandle", "CreateThread", "SystemFunction036", "WaitForSingleObject"),
    },
}
SYSTEMS = {
    "linux": {"libc.so.6", "libm.so.6"},
    "darwin": {"/usr/lib/libSystem.B.dylib", "@rpath/library.so"},  # the second is the name of the file itself
    "win32": {"advapi32.dll", "kernel32.dll", "ucrtbase.dll"},
}
HEADERS = {"__dso_handle", "_mh_dylib_header"}  # every library of macOS imports it


def names_in_c(symbols: Iterable[lief.Symbol]) -> set[str]:
    """Names without the underscore that macOS prepends."""
    return {str(symbol.name).removeprefix("_") for symbol in symbols}


def opened(path: Path) -> lief.ELF.Binary | lief.MachO.Binary | lief.PE.Binary:
    library = lief.parse(path)
    assert isinstance(library, lief.ELF.Binary | lief.MachO.Binary | lief.PE.Binary)
    return library


def exports_of(path: Path) -> set[str]:
    match opened(path):
        case lief.ELF.Binary() as elf:
            return {str(symbol.name) for symbol in elf.dynamic_symbols if symbol.shndx}
        case lief.MachO.Binary() as macho:
            return names_in_c(macho.exported_symbols) - HEADERS
        case lief.PE.Binary() as dll:
            exports = dll.get_export()
            assert exports is not None
            return {str(entry.name) for entry in exports.entries}


def imports_of(path: Path) -> set[str]:
    match opened(path):
        case lief.ELF.Binary() as elf:
            return {str(symbol.name) for symbol in elf.dynamic_symbols if symbol.name and not symbol.shndx}
        case lief.MachO.Binary() as macho:
            return names_in_c(macho.imported_symbols)
        case lief.PE.Binary() as dll:
            return {str(entry.name) for module in dll.imports for entry in module.entries}


def libraries_of(path: Path) -> set[str]:
    match opened(path):
        case lief.MachO.Binary() as macho:
            return {str(library.name) for library in macho.libraries}
        case library:
            return {str(name) for name in library.libraries}


@pytest.mark.parametrize("name", BUILT)
def test_the_library_for_duckdb_imports_only_system_functions(name: str) -> None:
    path, system = LIBRARIES / name / DUCKDB_FILE, PLATFORMS[name].system
    assert exports_of(path) == set(EXPORTED_TO_DUCKDB)
    assert imports_of(path) <= C | OWN[system]
    assert libraries_of(path) <= SYSTEMS[system]


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("name", [name for name in BUILT if PLATFORMS[name].has_postgresql])
def test_libraries_for_postgresql_have_the_same_imports(name: str, major: int) -> None:
    """The library for this machine is tested in servers; those for other systems import the same functions."""
    if "linux_amd64" not in BUILT:
        pytest.skip("there is none to compare with")
    path, tested = (LIBRARIES / platform / postgresql_file(major) for platform in (name, "linux_amd64"))
    system = PLATFORMS[name].system
    allowed = C | OWN["linux"] | OWN[system]
    assert imports_of(path) - allowed == imports_of(tested) - allowed
    assert exports_of(path) == exports_of(tested)
    assert libraries_of(path) <= SYSTEMS[system]
