"""Mutated GLSL, HLSL and Slang sources, and SPIR-V modules: ``python -m tests.support.fuzz_sources [COUNT] [--seed N] [--only WORD]``, or
``./dev fuzz``. There are COUNT sources and twice as many modules (see `tests.support.fuzz_modules`).

Each source goes through `kp.ShaderModule`, its signature and `kp.check`; what compiles becomes a kernel on every `_KERNELS`-th turn. It
holds if no process ends, nothing takes longer than ten seconds, every refusal is a KomputeError, and the compilers write nothing to the
standard output.

The work is done by a child process in batches, so that a crash ends the batch alone and is reported with the mutant's number;
``--only LANGUAGE:NUMBER`` runs that one, and shows it.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import time
import warnings

import kompute_py as kp
from kompute_py._compilers.slang_library import find_slang
from tests.shaders.test_slang import GLSL, HLSL, SCALE, SLANG
from tests.support import fuzz_modules
from tests.support.hlsl_programs import BLOCK_SOURCES

_REGULAR = stat.S_ISREG(os.fstat(1).st_mode)  # whether the standard output is a file
_LIMIT = 10.0  # seconds for one mutant
_BATCH = 250
_KERNELS = 10
_TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)

SEEDS: dict[str, list[str]] = {
    "glsl": [
        GLSL,
        "#version 450\n#define N 4\nlayout(local_size_x = N) in;\nlayout(binding = 0, rgba8) uniform image2D i;\n"
        "struct S { vec3 a; float b[N]; };\nlayout(std430, binding = 1) buffer B { S s[]; };\n"
        "float f(S x) { float t = 0; for (int i = 0; i < N; ++i) t += x.b[i]; return t; }\n"
        "void main() { uint k = gl_GlobalInvocationID.x; imageStore(i, ivec2(k, 0), vec4(f(s[k]))); }\n",
    ],
    "hlsl": [HLSL, *BLOCK_SOURCES],
    "slang": [SLANG, SCALE, *BLOCK_SOURCES[:2]],
}
COMPILERS = {
    "glsl": ["glslang"],
    "hlsl": ["glslang"] if find_slang() is None else ["slang", "glslang"],
    "slang": [] if find_slang() is None else ["slang"],
}


def mutant(language: str, number: int, seed: int) -> str:
    """The source of that number: one of the seeds with some tokens dropped, doubled, exchanged or replaced."""
    chance = random.Random(f"{language} {number} {seed}")
    seeds = SEEDS[language]
    tokens = _TOKENS.findall(chance.choice(seeds))
    others = _TOKENS.findall(chance.choice(seeds))
    if chance.random() < 0.5:
        return _mild(tokens, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        turn = chance.randrange(8)
        if turn == 0:
            del tokens[at]
        elif turn == 1:
            tokens.insert(at, tokens[other])
        elif turn == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif turn == 3:
            tokens[at] = chance.choice(others)
        elif turn == 4:
            del tokens[at : at + chance.randrange(1, 8)]
        elif turn == 5:
            tokens[at:at] = tokens[other : other + chance.randrange(1, 12)]
        elif turn == 6:
            tokens[at] = chance.choice(
                (
                    "0",
                    "-1",
                    "4294967296",
                    "1e999",
                    "(",
                    ")",
                    "{",
                    "}",
                    "[",
                    "]",
                    ";",
                    "<",
                    "#",
                    "\\",
                    '"',
                    "é",
                )
            )
        elif tokens[at]:
            place = chance.randrange(len(tokens[at]))
            tokens[at] = tokens[at][:place] + chr(chance.randrange(1, 127)) + tokens[at][place + 1 :]
        if not tokens:
            break
    return "".join(tokens)


_KINDS = (
    re.compile(r"[A-Za-z_]\w*"),
    re.compile(r"\d+"),
    re.compile(r"[-+*/%<>=&|^]"),
)


def _mild(tokens: list[str], chance: random.Random) -> str:
    """One to three names, numbers or operators exchanged for others of the source, so that many get past the grammar."""
    for _ in range(chance.randrange(1, 4)):
        kind = chance.choice(_KINDS)
        places = [i for i, token in enumerate(tokens) if kind.fullmatch(token)]
        at = chance.choice(places)
        numbers = ("0", "1", "7", "31", "64", "65536", "4294967295")
        tokens[at] = chance.choice(numbers) if kind is _KINDS[1] else tokens[chance.choice(places)]
    return "".join(tokens)


def attempt(source: str, language: str, compiler: str, manager: kp.Manager | None) -> str:
    """Whether it compiles: "yes", or the class of the refusal."""
    try:
        module = kp.ShaderModule(source, language=language, compiler=compiler, cache=False)
        module.signature.text("k")
        kp.check(module, device=manager)
        if manager is not None:
            manager.kernel(module)
    except kp.KomputeError as error:
        str(error)
        return type(error).__name__
    return "yes"


def run_range(language: str, begin: int, end: int, seed: int) -> dict[str, int]:
    """How often each outcome came; says each number before it begins, for the parent."""
    counts: dict[str, int] = {}
    manager = kp.Manager() if language != "hlsl" else None
    compilers = COMPILERS.get(language)
    # A hang in native code cannot be ended otherwise.
    ended = 12 * _LIMIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(begin, end):
            print(f"{language}:{number}", flush=True)
            written = os.lseek(1, 0, os.SEEK_CUR) if _REGULAR else 0
            faulthandler.dump_traceback_later(ended, exit=True)
            if compilers is None:
                assert manager is not None
                spirv = fuzz_modules.module(number, seed)
                # Of the processor, which others may use too: nothing waits here.
                worked = time.process_time()
                outcome = fuzz_modules.attempt(spirv, manager)
                began = time.monotonic() - (time.process_time() - worked)
            else:
                source = mutant(language, number, seed)
                compiler = compilers[number % len(compilers)]
                began = time.monotonic()
                outcome = attempt(source, language, compiler, manager if number % _KERNELS == 0 else None)
            faulthandler.cancel_dump_traceback_later()
            if _REGULAR and os.lseek(1, 0, os.SEEK_CUR) != written:
                raise AssertionError(f"{language}:{number} wrote to the standard output")
            if time.monotonic() - began > _LIMIT:
                raise TimeoutError(f"{language}:{number} took {time.monotonic() - began:.1f} s")
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _batch(language: str, begin: int, end: int, seed: int) -> str:
    """What went wrong in a batch; "" for nothing."""
    command = [
        sys.executable,
        "-m",
        "tests.support.fuzz_sources",
        "--batch",
        f"{language}:{begin}:{end}",
        "--seed",
        str(seed),
    ]
    environment = {**os.environ, "KOMPUTE_PY_COMPILE_TIMEOUT": "8"}
    # A file, so that the child sees how much is in it.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            timeout=3600,
            check=False,
        )
        output.seek(0)
        lines = output.read().split("\n")
    if done.returncode == 0:
        print(f"{language} {begin} to {end - 1}: {lines[-2]}", flush=True)
        return ""
    at = [line for line in lines if line.startswith(f"{language}:")][-1:]
    return f"{' '.join(at)}: exit status {done.returncode}: {done.stderr[-800:]}"


def main(arguments: list[str] | None = None) -> int:
    """The number of batches that failed."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument(
        "count",
        nargs="?",
        type=int,
        default=20_000,
        help="sources, over all languages; there are twice as many modules",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", choices=["spirv", *SEEDS], help="only these")
    parser.add_argument("--only", metavar="LANGUAGE:NUMBER")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.batch:
        language, begin, end = options.batch.split(":")
        print(run_range(language, int(begin), int(end), options.seed))
        return 0
    if options.only:
        language, number = options.only.split(":")
        if language == "spirv":
            spirv = fuzz_modules.module(int(number), options.seed)
            print(fuzz_modules.attempt(spirv, kp.Manager()))
            return 0
        source = mutant(language, int(number), options.seed)
        print(source)
        for compiler in COMPILERS[language]:
            print(compiler, attempt(source, language, compiler, None))
        return 0
    languages = [language for language in SEEDS if COMPILERS[language]]
    each = -(-options.count // len(languages))
    failures = []
    counts = {"spirv": 2 * options.count, **dict.fromkeys(languages, each)}
    for language, count in counts.items():
        if options.language not in (None, language):
            continue
        for begin in range(0, count, _BATCH):
            if problem := _batch(language, begin, min(begin + _BATCH, count), options.seed):
                failures.append(problem)
                print(problem, flush=True)
    tried = sum(n for language, n in counts.items() if options.language in (None, language))
    print(f"{tried} mutants, {len(failures)} failures")
    return len(failures)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
