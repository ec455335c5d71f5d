"""Mutated GLSL, HLSL and Slang sources, and SPIR-V modules: ``python -m tests.support.fuzz_sources [COUNT]
[--seed N] [--only WORD]``, or ``./dev fuzz``. There are COUNT sources and twice as many modules (see
`tests.support.fuzz_modules`).

Each source goes through `kp.ShaderModule`, its signature and `kp.check`; what compiles becomes a kernel on
every `_KERNELS`-th turn. It holds if no process ends, nothing takes longer than ten seconds (`--patience`),
every refusal is a KomputeError, and the compilers write nothing to the standard output.

A child process does the work in batches, so that a crash ends the child alone and is reported with the
mutant's number; another child does the rest of the batch. A mutant that takes too long is tried again alone,
because other work on the machine may have held it up. ``--only LANGUAGE:NUMBER`` runs one mutant, and shows
it.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import re
import stat
import sys
import time
import warnings
from collections import Counter

import kompute_py as kp
from kompute_py._compilers.libraries import find_library
from tests.compilers.test_slang import GLSL, HLSL, SCALE, SLANG
from tests.drivers import environment
from tests.support import fuzz_modules
from tests.support.child import python
from tests.support.programs import BLOCK_SOURCES

_REGULAR = stat.S_ISREG(os.fstat(1).st_mode)  # whether the standard output is a file
_PATIENCE = 10.0  # seconds for one mutant
_BATCH = 250
_KERNELS = 11  # odd, so that each of two compilers gets its turn
CHILD = ["-m", "tests.support.fuzz_sources"]
_TOKENS = re.compile(r"\w+|\s+|.", re.DOTALL)

SEEDS: dict[str, list[str]] = {
    "glsl": [
        GLSL,
        "#version 450\n#define N 4\nlayout(local_size_x = N) in;\nlayout(binding = 0, rgba8) uniform image2D "
        "i;\n"
        "struct S { vec3 a; float b[N]; };\nlayout(std430, binding = 1) buffer B { S s[]; };\n"
        "float f(S x) { float t = 0; for (int i = 0; i < N; ++i) t += x.b[i]; return t; }\n"
        "void main() { uint k = gl_GlobalInvocationID.x; imageStore(i, ivec2(k, 0), vec4(f(s[k]))); }\n",
    ],
    "hlsl": [HLSL, *BLOCK_SOURCES],
    "slang": [SLANG, SCALE, *BLOCK_SOURCES[:2]],
}
COMPILERS = {
    "glsl": [None],
    "hlsl": [kind for kind in ("dxc", "slang") if find_library(kind) is not None],
    "slang": [] if find_library("slang") is None else ["slang"],
}


def mutant(language: str, number: int, seed: int) -> str:
    """The source of that number: one of the seeds with some tokens dropped, doubled, exchanged or
    replaced."""
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
    """One to three names, numbers or operators exchanged for others of the source, so that many get past the
    grammar.
    """
    for _ in range(chance.randrange(1, 4)):
        kind = chance.choice(_KINDS)
        places = [i for i, token in enumerate(tokens) if kind.fullmatch(token)]
        at = chance.choice(places)
        numbers = ("0", "1", "7", "31", "64", "65536", "4294967295")
        tokens[at] = chance.choice(numbers) if kind is _KINDS[1] else tokens[chance.choice(places)]
    return "".join(tokens)


def attempt(source: str, language: str, compiler: str | None, manager: kp.Manager | None) -> str:
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


def run_range(language: str, begin: int, end: int, seed: int, patience: float) -> None:
    """Says each number before it begins, for the parent, and after it what came of it."""
    manager = kp.Manager()
    compilers = COMPILERS.get(language)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(begin, end):
            print(f"{language}:{number}", end="", flush=True)
            written = os.lseek(1, 0, os.SEEK_CUR) if _REGULAR else 0
            # A hang in native code cannot be ended otherwise.
            faulthandler.dump_traceback_later(6 * patience, exit=True)
            if compilers is None:
                spirv = fuzz_modules.module(number, seed)
                began = time.monotonic()
                outcome = fuzz_modules.attempt(spirv, manager)
            else:
                source = mutant(language, number, seed)
                compiler = compilers[number % len(compilers)]
                began = time.monotonic()
                outcome = attempt(source, language, compiler, manager if number % _KERNELS == 0 else None)
            taken = time.monotonic() - began
            faulthandler.cancel_dump_traceback_later()
            if _REGULAR and os.lseek(1, 0, os.SEEK_CUR) != written:
                raise AssertionError(f"{language}:{number} wrote to the standard output")
            if taken > patience:
                raise TimeoutError(f"{language}:{number} took {taken:.1f} s")
            print(f" {outcome}")


def _child(language: str, begin: int, end: int, seed: int, patience: float) -> tuple[Counter[str], int, str]:
    """One process: the outcomes, the number at which it stopped, and why; `end` and "" if it did them all."""
    command = [
        *CHILD, "--batch", f"{language}:{begin}:{end}", "--seed", str(seed), "--patience", str(patience),
    ]  # fmt: skip
    # Compilations end by themselves before the patience does.
    done = python(*command, timeout=3600, KOMPUTE_PY_COMPILE_TIMEOUT=str(0.8 * patience))
    said = re.findall(rf"^{language}:(\d+)(?: (\w+)$)?", done.stdout, re.MULTILINE)
    outcomes = Counter(outcome for _, outcome in said if outcome)
    if done.returncode == 0:
        assert outcomes.total() == end - begin, f"{command} did {outcomes.total()} of {end - begin}"
        return outcomes, end, ""
    at = int(said[-1][0]) if said else begin
    return outcomes, at, f"{language}:{at}: exit status {done.returncode}: {done.stderr[-800:]}"


def run_batch(
    language: str, begin: int, end: int, seed: int, patience: float = _PATIENCE
) -> tuple[Counter[str], list[str]]:
    """How often each outcome came, and what went wrong.

    All mutants are tried, whichever of them end the process.
    """
    outcomes: Counter[str] = Counter()
    problems = []
    while begin < end:
        counts, at, problem = _child(language, begin, end, seed, patience)
        outcomes += counts
        if ("TimeoutError: " in problem or "Timeout (" in problem) and at < end:
            counts, _, problem = _child(language, at, at + 1, seed, patience)
            outcomes += counts
        if problem:
            problems.append(problem)
        begin = at + 1
    return outcomes, problems


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
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first mutant of each language (0)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", choices=["spirv", *SEEDS], help="only these")
    parser.add_argument(
        "--patience",
        type=float,
        default=_PATIENCE,
        help="seconds that a mutant may take; more on a busy machine (10)",
    )
    parser.add_argument("--driver", default=os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe"))
    parser.add_argument("--only", metavar="LANGUAGE:NUMBER")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.batch:
        language, begin, end = options.batch.split(":")
        run_range(language, int(begin), int(end), options.seed, options.patience)
        return 0
    os.environ.update(environment(options.driver))
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
    for language in SEEDS:
        if language not in languages:
            print(f"{language}: left out, because the library of its compiler is not here")
    each = -(-options.count // len(languages))
    failures = tried = 0
    counts = {"spirv": 2 * options.count, **dict.fromkeys(languages, each)}
    for language, count in counts.items():
        if options.language not in (None, language):
            continue
        total: Counter[str] = Counter()
        last = options.first + count
        for begin in range(options.first, last, _BATCH):
            end = min(begin + _BATCH, last)
            outcomes, problems = run_batch(language, begin, end, options.seed, options.patience)
            print(f"{language} {begin} to {end - 1}: {dict(outcomes)}", *problems, sep="\n", flush=True)
            total += outcomes
            tried += end - begin
            failures += len(problems)
        print(f"{language}: {dict(total)}", flush=True)
    print(f"{tried} mutants on {options.driver}, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
