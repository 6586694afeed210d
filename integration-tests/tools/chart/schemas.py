"""Holds objects against schemas: of Kubernetes, strictly, and of the operators that the chart makes objects for."""

import json
from pathlib import Path

import jsonschema
import kubernetes_validate

from chart.objects import name_of

# Oldest and newest that the chart is for.
VERSIONS = ("1.27", kubernetes_validate.latest_version())

# Members of kinds that Kubernetes itself does not know, as far as the chart uses them.
OPERATORS = json.loads(Path(__file__).with_name("operators.json").read_text())


def schema_problems(objects, version):
    for candidate in objects:
        kind = f"{candidate['apiVersion']} {candidate['kind']}"
        try:
            if kind in OPERATORS["kinds"]:
                jsonschema.validate(candidate["spec"], {**OPERATORS, "$ref": f"#/kinds/{pointer(kind)}"})
            else:
                kubernetes_validate.validate(candidate, version, strict=True)
        except (kubernetes_validate.ValidationError, jsonschema.ValidationError) as error:
            path = ".".join(str(step) for step in error.path)
            yield f"{candidate['kind']} {name_of(candidate)}: {path}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield error.message


def pointer(member):
    return member.replace("~", "~0").replace("/", "~1")
