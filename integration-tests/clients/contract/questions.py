"""What is asked, where no schema can tell what is worth asking."""

import re

import schemathesis

NAME = re.compile("[a-zA-Z0-9]([-._a-zA-Z0-9]{0,125}[a-zA-Z0-9])?")

# The template that exists throughout.
TEMPLATE = "contract"


def ask_for_sessions_that_can_be(wish):
    """Made-up names of templates would never give a session to look at."""
    wish["properties"]["template_name"] = {"type": "string", "enum": [TEMPLATE]}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Gives boot sets keys that are names, and the same names if any, which no schema can ask for (2.8.2)."""
    sets = case.body.get("boot_sets") if isinstance(case.body, dict) else None
    if not isinstance(sets, dict):
        return
    named = {f"set-{number}": boot_set for number, boot_set in enumerate(sets.values())}
    for key, boot_set in named.items():
        if isinstance(boot_set, dict) and NAME.fullmatch(str(boot_set.get("name"))):
            named[key] = {**boot_set, "name": key}
    case.body = {**case.body, "boot_sets": named}
