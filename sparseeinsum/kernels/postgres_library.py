"""Kernels: machine code of all kernels in, a shared library that one major version of PostgreSQL loads out.

The linker is the system's; neither a compiler nor the server's headers are needed. Names of functions in the library
hold the extension's version, so that a script of another version finds none of its functions there.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import llvmlite.binding as llvm

from sparseeinsum.errors import ExtensionError
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels import postgres_descriptors as pd
from sparseeinsum.kernels.kernel_descriptions import describe, message_texts
from sparseeinsum.kernels.native import kernel_objects, target_machine
from sparseeinsum.kernels.postgres_functions import CFunction, c_functions
from sparseeinsum.kernels.postgres_symbols import GLUE
from sparseeinsum.kernels.processors import NATIVE, check_code, features, is_x86

VERSIONS = (15, 16, 17, 18)  # majors of PostgreSQL

# Pg_magic_struct of fmgr.h: its own bytes; the version times 100, most arguments of a function and columns of an index,
# bytes of a name, whether float8 is passed by value; who builds servers like this; since 18 a name and a version, too.
_MAGIC = "[ i32 {bytes}, i32 {version}00, i32 100, i32 32, i32 64, i32 1 ]"
_ABI = "PostgreSQL"
_ABI_BYTES = 32

_FEATURE_NOT_SUPPORTED = "0A000"
_UNFIT = (
    "the library of sparseeinsum was built for another processor and cannot run on this one; "
    "build it on this machine, or with --processor x86-64-v2"
)

_LINKERS = ("ld", "ld.lld", "ld.bfd", "ld.gold")


def link_symbol(symbol: str, version: str) -> str:
    """Name of a function in the library of a version of the extension.

    >>> link_symbol("version", "0.1.0")
    'sparseeinsum_0_1_0_version'
    """
    return f"sparseeinsum_{re.sub(r'[^0-9A-Za-z]', '_', version)}_{symbol}"


def build_library(path: Path, server: int, version: str, processor: str = NATIVE) -> None:
    """Write the library for a major version of PostgreSQL.

    Args:
        path: Of the file, which is replaced whole or not at all: servers that run may have the old one in memory.
        server: One of VERSIONS.
        version: Of the extension.
        processor: One of `processors.PROCESSORS`; on others that lack something, the library refuses to be loaded.

    Raises:
        ExtensionError: The version or processor is not supported, there is no linker, or it failed.
    """
    if server not in VERSIONS:
        raise ExtensionError(f"PostgreSQL {server} is not supported; versions are {', '.join(map(str, VERSIONS))}")
    if processor != NATIVE and not is_x86():
        raise ExtensionError(f"the processor {processor} is none of this machine's kind; build for {NATIVE}")
    module = llvm.parse_assembly("\n".join((*_host_code(server, version), *_first_check(processor), GLUE)))
    module.verify()
    least = target_machine("x86-64" if is_x86() else NATIVE)  # what checks the processor runs on any
    objects = (*kernel_objects("postgres", processor), least.emit_object(module))
    with tempfile.TemporaryDirectory() as temporary:
        linked = _link(objects, _exported(version), Path(temporary))
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(linked.read_bytes())
        Path(file.name).chmod(0o755)
        Path(file.name).replace(path)


def _link(objects: Iterable[bytes], exported: Sequence[str], folder: Path) -> Path:
    linker = next((found for name in _LINKERS if (found := shutil.which(name))), None)
    if linker is None:
        raise ExtensionError(f"no linker found (one of {', '.join(_LINKERS)}); apt-get install binutils brings ld")
    files = []
    for index, code in enumerate(objects):
        files.append(folder / f"{index}.o")
        files[-1].write_bytes(code)
    script, library = folder / "exported.map", folder / "library.so"
    script.write_text(f"{{ global: {' '.join(f'{name};' for name in exported)} local: *; }};")
    options = (
        "-shared",
        "-z",
        "now",
        "-z",
        "relro",
        "-z",
        "noexecstack",
        "--gc-sections",
        f"--version-script={script}",
    )
    finished = subprocess.run(
        [linker, *options, "-o", str(library), *map(str, files)], capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        raise ExtensionError(f"{linker} failed: {finished.stderr.strip()[-2000:]}")
    return library


def _exported(version: str) -> list[str]:
    names = [link_symbol("version", version), *(link_symbol(each.symbol, version) for each in c_functions())]
    return ["Pg_magic_func", "_PG_init", *names, *(f"pg_finfo_{name}" for name in names)]


def _host_code(server: int, version: str) -> Iterator[str]:
    """LLVM IR of what is PostgreSQL's alone: its entry points, and tables that tell callbacks what to do."""
    yield from _magic(server)
    yield "@finfo = private constant i32 1"
    users_words = 1 + d.MAX_USERS_FUNCTIONS * d.USERS_FUNCTION_WORDS
    yield f"@{d.USERS_FUNCTIONS} = hidden constant [{users_words} x i64] zeroinitializer"  # there are none here
    yield from _version_function(version)
    texts = message_texts()
    yield from (_text(f"message_{code}", text) for code, text in enumerate(texts))
    yield _words("messages", [f"ptrtoint (ptr @message_{code} to i64)" for code in range(len(texts))])
    yield _words("sqlstates", [str(state) for state in pd.sqlstate_words()])
    functions = c_functions()
    yield from (_text(f"name_{name}", name) for name in sorted({each.function.name for each in functions}))
    symbols = {symbol for each in functions for symbol in describe(each.function, each.dtype).symbols.values()}
    yield from (f"@{symbol} = extern_weak hidden global i8" for symbol in sorted(symbols))
    yield from (f"declare i64 @{name}(i64, i64)" for name in sorted({each.callback for each in functions}))
    yield from map(partial(_entry_point, version=version), functions)


def _magic(server: int) -> Iterator[str]:
    more = ", ptr, ptr" if server >= 18 else ""
    nothing = ", ptr null, ptr null" if server >= 18 else ""
    size = 6 * 4 + _ABI_BYTES + (16 if more else 0)
    numbers = _MAGIC.format(bytes=size, version=server)
    yield f"""@magic = private constant {{ [6 x i32], [{_ABI_BYTES} x i8]{more} }} {{
  [6 x i32] {numbers}, [{_ABI_BYTES} x i8] {_bytes(_ABI.encode().ljust(_ABI_BYTES, bytes(1)))}{nothing} }}
define ptr @Pg_magic_func() {{ ret ptr @magic }}"""


def _first_check(processor: str) -> Iterator[str]:
    """What PostgreSQL calls when it has loaded the library: an error in time is better than a crash later."""
    yield check_code(features(processor))
    yield _text("unfit", _UNFIT)
    yield f"""define void @_PG_init() {{
  %fits = call i1 @sparseeinsum_processor_fits()
  br i1 %fits, label %done, label %refuse
refuse:
  call void @sparseeinsum_raise(i64 {pd.sqlstate_word(_FEATURE_NOT_SUPPORTED)}, i64 ptrtoint (ptr @unfit to i64))
  br label %done
done:
  ret void
}}"""


def _version_function(version: str) -> Iterator[str]:
    """A function that returns the extension's version: a text, whose header is its length in bytes times four."""
    symbol, text = link_symbol("version", version), version.encode()
    yield f"""@version = private constant {{ i32, [{len(text)} x i8] }} {{
  i32 {4 * (4 + len(text))}, [{len(text)} x i8] {_bytes(text)} }}
define i64 @{symbol}(i64 %call_info) {{ ret i64 ptrtoint (ptr @version to i64) }}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""


def _entry_point(function: CFunction, version: str) -> str:
    """What PostgreSQL calls, and the descriptor that it hands to a callback beside the call's arguments."""
    symbol, description = link_symbol(function.symbol, version), describe(function.function, function.dtype)
    words = ["0"] * pd.DESCRIPTOR_WORDS
    for place, number in description.numbers.items():
        words[place] = str(number)
    for place, name in (
        *description.symbols.items(),
        (d.NAME, f"name_{function.function.name}"),
        (d.MESSAGES, "messages"),
        (pd.SQLSTATES, "sqlstates"),
    ):
        words[place] = f"ptrtoint (ptr @{name} to i64)"
    words[d.LIMIT_BYTES] = str(pd.LARGEST_RESULT)
    words[pd.RESULT_TYPE] = str(function.result)
    for index, (declared, wanted) in enumerate(zip(function.declared, function.wanted, strict=True)):
        words[pd.DECLARED + index], words[pd.WANTED + index] = str(declared), str(wanted)
    return f"""{_words(f"descriptor_{symbol}", words)}
define i64 @{symbol}(i64 %call_info) {{
  %result = call i64 @{function.callback}(i64 %call_info, i64 ptrtoint (ptr @descriptor_{symbol} to i64))
  ret i64 %result
}}
define ptr @pg_finfo_{symbol}() {{ ret ptr @finfo }}"""


def _words(name: str, words: Sequence[str]) -> str:
    return f"@{name} = private constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]"


def _text(name: str, text: str) -> str:
    held = text.encode() + bytes(1)
    return f"@{name} = private constant [{len(held)} x i8] {_bytes(held)}"


def _bytes(held: bytes) -> str:
    return 'c"' + "".join(f"\\{byte:02X}" for byte in held) + '"'
