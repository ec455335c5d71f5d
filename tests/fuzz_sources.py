"""Mutated GLSL, HLSL and Slang sources: ``python -m tests.fuzz_sources [COUNT] [--seed N] [--only WORD]``, or ``./dev fuzz``.

Each mutant goes through `kp.ShaderModule`, its signature and `kp.check`; what compiles becomes a kernel on every `_KERNELS`-th turn. It
holds if no process ends, nothing takes longer than ten seconds, and every refusal is a KomputeError.

The work is done by a child process in batches, so that a crash ends the batch alone and is reported with the mutant's number;
``--only LANGUAGE:NUMBER`` runs that one, and shows it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
import warnings

import kompute_py as kp
from kompute_py.slang_library import find_slang

from .hlsl_programs import BLOCK_SOURCES
from .test_slang import GLSL, HLSL, SCALE, SLANG

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
    compilers = COMPILERS[language]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(begin, end):
            print(f"{language}:{number}", flush=True)
            source = mutant(language, number, seed)
            compiler = compilers[number % len(compilers)]
            began = time.monotonic()
            outcome = attempt(source, language, compiler, manager if number % _KERNELS == 0 else None)
            if time.monotonic() - began > _LIMIT:
                raise TimeoutError(f"{language}:{number} took {time.monotonic() - began:.1f} s")
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _batch(language: str, begin: int, end: int, seed: int) -> str:
    """What went wrong in a batch; "" for nothing."""
    command = [
        sys.executable,
        "-m",
        "tests.fuzz_sources",
        "--batch",
        f"{language}:{begin}:{end}",
        "--seed",
        str(seed),
    ]
    environment = {**os.environ, "KOMPUTE_PY_COMPILE_TIMEOUT": "8"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=3600, check=False)
    lines = done.stdout.split("\n")
    if done.returncode == 0:
        print(f"{language} {begin} to {end - 1}: {lines[-2]}", flush=True)
        return ""
    at = [line for line in lines if line.startswith(f"{language}:")][-1:]
    return f"{' '.join(at)}: exit status {done.returncode}: {done.stderr[-800:]}"


def main(arguments: list[str] | None = None) -> int:
    """The number of batches that failed."""
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="mutants, over all languages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="LANGUAGE:NUMBER")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.batch:
        language, begin, end = options.batch.split(":")
        print(run_range(language, int(begin), int(end), options.seed))
        return 0
    if options.only:
        language, number = options.only.split(":")
        source = mutant(language, int(number), options.seed)
        print(source)
        for compiler in COMPILERS[language]:
            print(compiler, attempt(source, language, compiler, None))
        return 0
    languages = [language for language in SEEDS if COMPILERS[language]]
    each = -(-options.count // len(languages))
    failures = []
    for language in languages:
        for begin in range(0, each, _BATCH):
            if problem := _batch(language, begin, min(begin + _BATCH, each), options.seed):
                failures.append(problem)
                print(problem, flush=True)
    print(f"{each * len(languages)} mutants, {len(failures)} failures")
    return len(failures)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
