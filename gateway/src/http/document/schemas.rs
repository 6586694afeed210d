//! The schemas of a document.

use schemars::{
    JsonSchema, Schema,
    generate::{SchemaGenerator, SchemaSettings},
};
use serde_json::{Map, Value};

/// Generates the schema of a type.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Returns the schema of `T`, to be generated later.
pub(super) const fn of<T: JsonSchema>() -> Describe {
    SchemaGenerator::subschema_for::<T>
}

/// Place of the schemas in a document.
const PLACE: &str = "#/components/schemas/";

/// Schemas of requests and of answers. A type may differ in the two: a read-only member is not part of a request.
pub(super) struct DocumentSchemas {
    sent: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Default for DocumentSchemas {
    fn default() -> Self {
        let settings = SchemaSettings::openapi3().with(|settings| settings.meta_schema = None);
        Self {
            sent: settings.clone().for_deserialize().into_generator(),
            answered: settings.for_serialize().into_generator(),
        }
    }
}

impl DocumentSchemas {
    /// Returns the schema of a part of a request.
    pub(super) fn sent(&mut self, describe: Describe) -> Value {
        mark_references(describe(&mut self.sent).to_value())
    }

    /// Returns the schema of a part of an answer.
    pub(super) fn answered(&mut self, describe: Describe) -> Value {
        describe(&mut self.answered).to_value()
    }

    /// Puts every schema that was referred to into the document, without references to `source`.
    pub(super) fn finish(mut self, document: &mut Value, source: &str) {
        let answered = self.answered.take_definitions(true);
        let sent: Map<_, _> = self.sent.take_definitions(true);
        let sent: Map<_, _> =
            sent.into_iter().map(|(name, schema)| (name, mark_references(schema))).collect();
        let mut all = answered;
        let different = different(&sent, &all);
        for (name, schema) in sent {
            all.entry(if different.contains(&name) { format!("{name}{SENT}") } else { name })
                .or_insert(schema);
        }
        document["components"]["schemas"] = all.into();
        visit(document, &mut |object| {
            settle_reference(object, &different);
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = without_references(text, source);
            }
            // The list of required members implies the members without a default, and a read-only member has none.
            let default = object.get("default").filter(|value| value.is_null() || *value == "");
            if default.is_some() && object.contains_key("type") {
                object.remove("default");
            }
        });
    }
}

/// Returns the text without references such as ` (SOURCE 2.8)`, which serve readers of the code.
fn without_references(text: &str, source: &str) -> String {
    let opening = format!(" ({source} ");
    let mut parts = text.split(&opening);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Ending of the name of a type in requests, if the type differs there.
const SENT: &str = "Input";

/// Mark of a reference to a type in requests, until it is known whether the type differs there.
const MARK: &str = "?";

fn mark_references(mut schema: Value) -> Value {
    visit(&mut schema, &mut |object| {
        if let Some(Value::String(target)) = object.get_mut("$ref")
            && !target.ends_with(MARK)
        {
            target.push_str(MARK);
        }
    });
    schema
}

fn settle_reference(object: &mut Map<String, Value>, different: &[String]) {
    let Some(Value::String(target)) = object.get_mut("$ref") else { return };
    let Some(plain) = target.strip_suffix(MARK) else { return };
    let name = plain.strip_prefix(PLACE).unwrap_or(plain).to_owned();
    let ending = if different.contains(&name) { SENT } else { "" };
    *target = format!("{PLACE}{name}{ending}");
}

/// Returns the types that differ in requests, or refer to such types.
fn different(sent: &Map<String, Value>, answered: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let found = sent.iter().find(|(name, schema)| {
            let Some(other) = answered.get(*name) else { return false };
            let differs = mark_references(other.clone()) != **schema || refers(schema, &names);
            differs && !names.contains(name)
        });
        match found {
            Some((name, _)) => names.push(name.clone()),
            None => return names,
        }
    }
}

fn refers(schema: &Value, names: &[String]) -> bool {
    let text = schema.to_string();
    names.iter().any(|name| text.contains(&format!("{PLACE}{name}{MARK}\"")))
}

/// Applies `change` to every object in `value`.
fn visit(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            object.values_mut().for_each(|value| visit(value, change));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| visit(value, change)),
        _ => {}
    }
}
