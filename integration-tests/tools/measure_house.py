"""Counts what a reviewer can see at a glance and a compiler cannot: how the Rust code of this repository is cut and how
it speaks.

Prints one table: sizes of functions and files, the language of comments, names of types, closures bound to a name,
tuples packed into one `let`, `_` arms, and circles between sibling modules of a crate, at every depth. Judges nothing.
`--circles` names the modules of each circle and the paths by which they reach one another, `--pronouns` and `--types`
list what was counted.

`--check-circles` judges, and nothing else: it fails when a crate in the named folders has a circle.

Usage: measure_house.py [--circles] [--pronouns] [--types] [FOLDER...]   (default: the production code)
       measure_house.py --check-circles FOLDER...
"""

import argparse
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ["proto", "services", "gateway"]
TEST_PLACES = {"tests", "testing", "benches", "target"}

PRONOUNS = re.compile(
    r"(What|Who|Whom|Whose|Whoever|Whether somebody|Those|These|This|That|It|They|Them|One|The same|Nobody|Somebody"
    r"|Everybody|Nothing|Something|Others|Whatever)\b"
)
RIDDLES = re.compile(r"\b(what|who|whom|whose|whoever)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
TYPE = re.compile(r"\b(?:struct|enum|trait|union)\s+([A-Z]\w*)")
ONE_WORD = re.compile(r"[A-Z][a-z0-9]*$")
FUNCTION = re.compile(r"\bfn\s+(\w+)")
NAMED_CLOSURE = re.compile(r"\blet\s+(?:mut\s+)?\w+\s*(?::[^=;]+)?=\s*(?:async\s+)?(?:move\s+)?\|")
TUPLE_LET = re.compile(r"\blet\s*\(([^()=]*,[^()=]*)\)\s*=\s*\(")
WILD_ARM = re.compile(r"(?:^|[\s,{}])_\s*=>")
MODULE_PATH = re.compile(r"(?<!\$)\b(crate|super(?:::super)*)::(?=[\w{])")
EXPORT = re.compile(r"\bpub(?:\([^)]*\))?\s+use\s+(?:self::)?(?=\w)")


class Source:
    """One file, split into its code without comments and texts, and its comments."""

    def __init__(self, path):
        self.path = path
        self.code, self.comments = split(path.read_text())
        self.code = without_test_modules(self.code)
        self.lines = [line for line in self.code.splitlines() if line.strip()]


def split(text):
    """The code, with texts emptied and comments left out, and the comments as (kind, line) pairs."""
    code, comments, at = [], [], 0
    token = re.compile(
        r"""//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|(?P<raw>\bb?r(?P<h>\#*)".*?"(?P=h))"""
        r"""|(?P<text>b?"(?:\\.|[^"\\])*")|(?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\])')""",
        re.DOTALL,
    )
    for found in token.finditer(text):
        code.append(text[at : found.start()])
        at = found.end()
        if found["line"] is not None:
            comments.append(comment_of(found["line"]))
        elif found["raw"] or found["text"]:
            code.append('""' + "\n" * found[0].count("\n"))
        elif found["char"]:
            code.append("' '")
    code.append(text[at:])
    return "".join(code), comments


def comment_of(line):
    if line.startswith("/") and not line.startswith("//"):
        return "outer", line[1:].strip()
    if line.startswith("!"):
        return "inner", line[1:].strip()
    return "plain", line.strip()


def without_test_modules(code):
    """The code without `#[cfg(test)] mod name { .. }`."""
    while found := re.search(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", code):
        code = code[: found.start()] + code[closing_brace(code, found.end() - 1) :]
    return code


def closing_brace(code, opening):
    """The place after the brace that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def doc_openings(source):
    """First lines of doc comments: an outer one begins where the comment line before it was none of its kind."""
    before = ""
    for line in source.path.read_text().splitlines():
        stripped = line.strip()
        if stripped.startswith("///") and not before.startswith("///"):
            yield stripped[3:].strip()
        before = stripped


def function_lengths(code):
    """Lines of every function with a body, from its signature to its closing brace."""
    for found in FUNCTION.finditer(code):
        depth = 0
        for at in range(found.end(), len(code)):
            char = code[at]
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
            if depth == 0 and char == ";":
                break
            if depth == 0 and char == "{":
                yield code.count("\n", found.start(), closing_brace(code, at)) + 1
                break


def module_path(path, crate):
    """The names that lead from the root of a crate to the module of a file; none for the root itself."""
    parts = list(path.relative_to(crate / "src").with_suffix("").parts)
    if parts[-1] in ("mod", "lib", "main"):
        parts.pop()
    return tuple(parts)


def named_paths(source, own):
    """Paths from the root of the crate that the module `own` names by `crate::` or `super::`."""
    for found in MODULE_PATH.finditer(source.code):
        base = () if found[1] == "crate" else own[: len(own) - found[1].count("super")]
        for path in paths_at(source.code, found.end()):
            yield base + path


def paths_at(code, at):
    """Paths written at a place, with groups in braces taken apart."""
    if code[at : at + 1] == "{":
        for item in items(code[at + 1 : closing_brace(code, at) - 1]):
            yield from paths_at(item, 0)
        return
    name = re.compile(r"\w*").match(code, at)
    if not name[0]:
        yield ()
    elif code.startswith("::", name.end()):
        for rest in paths_at(code, name.end() + 2):
            yield (name[0], *rest)
    else:
        yield (name[0],)


def items(group):
    """Items of a group of imports, however deep groups stand in it."""
    depth, item = 0, ""
    for char in group + ",":
        if char == "," and depth == 0:
            yield item.strip()
            item = ""
            continue
        depth += {"{": 1, "}": -1}.get(char, 0)
        item += char


def exported(source, own, modules):
    """Paths under which a module, or the root of the crate, shows items of its own submodules, and the submodule of
    each. A path that is a module as well stands for the module."""
    for found in EXPORT.finditer(source.code):
        for path in paths_at(source.code, found.end()):
            if len(path) > 1 and own + path[:1] in modules:
                shown = own + path[-1:]
                if shown not in modules:
                    yield shown, own + path[:-1]


def circles(crate, sources):
    """Groups of sibling modules that reach one another, at every depth, with their parent, its number of modules and
    the paths between those of the group."""
    roots = [source for source in sources if source.path.stem in ("lib", "main")]
    modules = {module_path(source.path, crate): source for source in sources if source not in roots}
    exports = {}
    for own, source in [*(((), root) for root in roots), *modules.items()]:
        exports |= dict(exported(source, own, modules))
    graphs = {}
    for own in modules:
        for depth in range(len(own)):
            graphs.setdefault(own[:depth], {}).setdefault(own[depth], {})
    for own, source in modules.items():
        for written in named_paths(source, own):
            shown = (written[:end] for end in range(len(written), 0, -1) if written[:end] in exports)
            named = next((exports[path] for path in shown), written)
            depth = next((at for at, (one, other) in enumerate(zip(own, named)) if one != other), None)
            if depth is not None and named[depth] in graphs[own[:depth]]:
                path = "::".join(own), "::".join(written)
                graphs[own[:depth]][own[depth]].setdefault(named[depth], set()).add(path)
    for parent, graph in sorted(graphs.items()):
        reach = {module: reachable(graph, module) for module in graph}
        groups = {frozenset(b for b in graph if b in reach[a] and a in reach[b]) for a in graph}
        for group in sorted(sorted(group) for group in groups if len(group) > 1):
            paths = {path for module in group for other in group for path in graph[module].get(other, ())}
            yield "::".join([crate.name, *parent]), group, len(graph), sorted(paths)


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for name in graph[todo.pop()].keys() - seen:
            seen.add(name)
            todo.append(name)
    return seen


def rust_files(folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.rs")):
            parts = set(path.relative_to(ROOT).parts)
            if not parts & TEST_PLACES and path.name not in ("tests.rs", "testing.rs"):
                yield path


def crates(folders):
    for folder in folders:
        for manifest in sorted((ROOT / folder).rglob("Cargo.toml")):
            if "target" not in manifest.parts and (manifest.parent / "src").is_dir():
                yield manifest.parent


def circles_of(all_crates, sources):
    found = []
    for crate in all_crates:
        inside = [source for source in sources if source.path.is_relative_to(crate / "src")]
        found += circles(crate, inside)
    return found


def check_circles(folders):
    """Prints every circle, and tells whether there is none. A folder without a crate is a mistake of the caller."""
    found = circles_of(crates(folders), [Source(path) for path in rust_files(folders)])
    print_circles(found)
    missing = [folder for folder in folders if not any(crates([folder]))]
    for folder in missing:
        print(f"no crate in {folder}")
    return not found and not missing


def print_circles(found):
    for name, group, _, paths in found:
        print(f"circle in {name}: {', '.join(group)}")
        for module, named in paths:
            print(f"    {module} -> {named}")


def percent(part, whole):
    return f"{100 * part / max(whole, 1):.1f} % ({part} of {whole})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=PRODUCTION)
    for option in ("circles", "pronouns", "types"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--check-circles", nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.check_circles:
        return 0 if check_circles(arguments.check_circles) else 1

    sources = [Source(path) for path in rust_files(arguments.folders)]
    lines = sum(len(source.lines) for source in sources)
    functions = sorted(length for source in sources for length in function_lengths(source.code))
    files = sorted(len(source.lines) for source in sources)
    openings = [(source.path, text) for source in sources for text in doc_openings(source) if text]
    pronouns = [(path, text) for path, text in openings if PRONOUNS.match(text)]
    comments = " ".join(text for source in sources for _, text in source.comments)
    words = len(WORD.findall(comments))
    types = [name for source in sources for name in TYPE.findall(source.code)]
    one_word = [name for name in types if ONE_WORD.match(name)]

    def per_thousand(pattern):
        found = sum(len(pattern.findall(source.code)) for source in sources)
        return f"{1000 * found / max(lines, 1):.1f} per 1,000 lines ({found})"

    found_circles = circles_of(crates(arguments.folders), sources)

    rows = [
        ("lines of code", lines),
        ("functions: median, 95 %, longest", spread(functions)),
        ("files: median, 95 %, longest", spread(files)),
        ("doc comments that open with a pronoun", percent(len(pronouns), len(openings))),
        ("what/who per 1,000 words of comments", f"{1000 * len(RIDDLES.findall(comments)) / max(words, 1):.1f}"),
        ("types with one-word names", percent(len(one_word), len(types))),
        ("names of more than one type", sum(1 for count in Counter(types).values() if count > 1)),
        ("closures bound to a name", per_thousand(NAMED_CLOSURE)),
        ("tuples packed into one let", per_thousand(TUPLE_LET)),
        ("`_ =>` arms", per_thousand(WILD_ARM)),
        ("module circles", ", ".join(f"{name} {len(group)} of {all_}" for name, group, all_, _ in found_circles) or 0),
    ]
    for name, value in rows:
        print(f"{name:40} {value}")
    if arguments.circles:
        print_circles(found_circles)
    if arguments.pronouns:
        for path, text in pronouns:
            print(f"{path.relative_to(ROOT)}: {text}")
    if arguments.types:
        print(*sorted(set(one_word)), sep="\n")


def spread(values):
    return f"{statistics.median(values):.0f}, {values[int(len(values) * 0.95)]}, {values[-1]}" if values else "none"


if __name__ == "__main__":
    sys.exit(main())
