"""How the gateway's own document is asked: as it stands, but for sessions that can be."""

import schemathesis

import questions


@schemathesis.hook
def before_load_schema(context, raw_schema):
    questions.ask_for_sessions_that_can_be(raw_schema["components"]["schemas"]["NewSession"])
