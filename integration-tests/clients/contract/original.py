"""What the original answers otherwise than its own document says.

Reveille answers as the original does. So before the document judges its answers, it is made to say what the original
does; each correction names the part of the BOS reference that has it.
"""

import schemathesis

import questions

PROBLEM = "application/problem+json"


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Corrects the document in place."""
    components, paths = raw_schema["components"], raw_schema["paths"]
    correct_schemas(components["schemas"])
    correct_problems(components["responses"])
    for item in paths.values():
        for method in item.keys() - {"parameters"}:
            correct_operation(item[method], item.get("parameters", []))
    # 2.9.4: the status that was saved, not the session.
    saved = paths["/v2/sessions/{session_id}/status"]["post"]["responses"]
    saved[200] = {"$ref": "#/components/responses/V2SessionExtendedStatus"}
    questions.ask_for_sessions_that_can_be(components["schemas"]["V2SessionCreate"])


def correct_schemas(schemas):
    # 10.3, row 21: times have no zone.
    del schemas["V2ComponentLastUpdated"]["format"]
    # 2.6.3 to 2.6.5: writes are answered with when a token was resolved, which no request may say.
    schemas["V2BootArtifacts"]["properties"]["timestamp"] = {"type": "string", "readOnly": True}
    # 2.6.4: the filter that is not used may be null.
    schemas["EmptyStringNullable"]["enum"].append(None)
    # 2.8.3, row 7: a boot set names nodes.
    schemas["V2BootSet"]["anyOf"] = [
        {"required": [nodes]} for nodes in ("node_list", "node_roles_groups", "node_groups")
    ]
    # 2.2: other words for a change that cannot be.
    title = schemas["ProblemUpdateConflict"]["properties"]["title"]
    title["enum"] = ["Actual state can not be updated."]


def correct_problems(responses):
    """Problems have a type of their own, as the introduction of the document says (2.1, "error content type")."""
    for response in responses.values():
        content = response.get("content", {}).get("application/json")
        if content and "allOf" in content["schema"]:
            response["content"] = {PROBLEM: content}


def correct_operation(operation, parameters):
    """Whatever can be asked wrongly is answered with 400 (2.1), and with 413 or 415 when nobody reads so far."""
    responses = operation["responses"]
    if parameters or "parameters" in operation or "requestBody" in operation:
        responses.setdefault(400, {"$ref": "#/components/responses/BadRequest"})
    if "requestBody" in operation:
        problem = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
        for status in (413, 415):
            responses[status] = {"description": "A body of another kind", "content": {PROBLEM: problem}}
