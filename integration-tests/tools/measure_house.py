"""Counts what a reviewer can see at a glance and a compiler cannot: how the Rust code of this repository is cut and how
it speaks.

Prints one table: sizes of functions and files, the language of comments, names of types, closures bound to a name,
tuples packed into one `let`, `_` arms, and circles between the modules of a crate. Judges nothing. `--circles` names
the modules of each circle, `--pronouns` and `--types` list what was counted.

Usage: measure_house.py [--circles] [--pronouns] [--types] [FOLDER...]   (default: the production code)
"""

import argparse
import re
import statistics
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
MODULE_PATH = re.compile(r"\b(crate|super)((?:::super)*)::(\w+|\{)")


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


def module_of(path, crate):
    """The top-level module of a file in its crate."""
    parts = path.relative_to(crate / "src").parts
    return parts[0].removesuffix(".rs")


def imported(source, crate):
    """Top-level modules of the same crate that a file names by `crate::` or, from the top level, by `super::`."""
    inside = len(source.path.relative_to(crate / "src").parts)
    for found in MODULE_PATH.finditer(source.code):
        ups = found[2].count("super") + (found[1] == "super")
        # A file right under src is one level below the root, one in a folder two levels or more.
        level = inside - (source.path.name == "mod.rs")
        if found[1] == "super" and ups < level:
            continue
        if found[3] != "{":
            yield found[3]
            continue
        group = source.code[found.end() : closing_brace(source.code, found.end() - 1) - 1]
        yield from top_level_names(group)


def top_level_names(group):
    depth, name = 0, ""
    for char in group + ",":
        if char == "," and depth == 0:
            yield name.strip().split("::")[0]
            name = ""
            continue
        depth += {"{": 1, "}": -1}.get(char, 0)
        name += char


def circles(crate, sources):
    """Groups of top-level modules that reach one another, and the number of modules."""
    graph = {}
    for source in sources:
        graph.setdefault(module_of(source.path, crate), set())
    for source in sources:
        module = module_of(source.path, crate)
        if module not in ("lib", "main"):
            graph[module] |= {name for name in imported(source, crate) if name in graph} - {module, "lib", "main"}
    reach = {module: reachable(graph, module) for module in graph}
    groups = {frozenset(b for b in graph if b in reach[a] and a in reach[b]) for a in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1), len(graph)


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for name in graph[todo.pop()] - seen:
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


def percent(part, whole):
    return f"{100 * part / max(whole, 1):.1f} % ({part} of {whole})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=PRODUCTION)
    for option in ("circles", "pronouns", "types"):
        parser.add_argument(f"--{option}", action="store_true")
    arguments = parser.parse_args()

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

    found_circles = []
    for crate in crates(arguments.folders):
        inside = [source for source in sources if source.path.is_relative_to(crate / "src")]
        groups, modules = circles(crate, inside)
        found_circles += [(crate.name, group, modules) for group in groups]

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
        ("module circles", ", ".join(f"{name} {len(group)} of {all_}" for name, group, all_ in found_circles) or 0),
    ]
    for name, value in rows:
        print(f"{name:40} {value}")
    if arguments.circles:
        for name, group, _ in found_circles:
            print(f"circle in {name}: {', '.join(group)}")
    if arguments.pronouns:
        for path, text in pronouns:
            print(f"{path.relative_to(ROOT)}: {text}")
    if arguments.types:
        print(*sorted(set(one_word)), sep="\n")


def spread(values):
    return f"{statistics.median(values):.0f}, {values[int(len(values) * 0.95)]}, {values[-1]}" if values else "none"


if __name__ == "__main__":
    main()
