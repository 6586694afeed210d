"""Tables of the chart's values, made from values.yaml and its comments.

Usage: values_table.py CHART, which writes them into README.md of the chart.
"""

import re
import sys
from pathlib import Path

BEGIN = "<!-- Made from values.yaml by integration-tests/tools/chart/values_table.py. -->\n"
HEAD = "| value | default | meaning |\n|---|---|---|\n"


def readme(chart):
    """The text of README.md as it has to be: everything after the mark is made from the values."""
    text = (chart / "README.md").read_text()
    return text[: text.index(BEGIN) + len(BEGIN)] + tables((chart / "values.yaml").read_text())


def tables(values):
    """Sections of values with members, tables of those without, and paragraphs of comments that stand alone."""
    made, comment, path, has_table = [], [], [], False
    for line in values.splitlines() + [""]:
        entry = re.fullmatch(r"(\s*)([\w-]+):(?: (.*))?", line)
        remark = re.fullmatch(r"\s*# (?! |- )(.*)", line)
        if remark:
            comment.append(remark[1])
        elif entry:
            depth = len(entry[1]) // 2
            has_table = has_table and (depth > 0 or len(path) == 1)
            path = [*path[:depth], entry[2]]
            is_section = entry[3] is None and len(path) == 1
            if is_section:
                made.append(f"\n### `{entry[2]}`\n" + (f"\n{' '.join(comment)}\n" if comment else ""))
            elif entry[3] is not None or comment:
                made.append(("" if has_table else "\n" + HEAD) + row(path, entry[3], comment))
            has_table = not is_section and (has_table or entry[3] is not None or bool(comment))
            comment = []
        elif not line.strip() and comment:
            made.append(f"\n{' '.join(comment)}\n")
            comment, has_table = [], False
    return "".join(made)


def row(path, default, comment):
    shown = "" if default is None else f"`{default}`"
    return f"| `{'.'.join(path)}` | {shown} | {' '.join(comment)} |\n".replace("|  |", "| |").replace("|  |", "| |")


def table_problems(chart):
    """README.md has the values as they are."""
    if (chart / "README.md").read_text() != readme(chart):
        yield "README.md has other values: python3 integration-tests/tools/chart/values_table.py charts/reveille"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "README.md").write_text(readme(folder))
