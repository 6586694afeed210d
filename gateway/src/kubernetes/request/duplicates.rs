//! JSON whose repeated members are found: the parser keeps the last one silently.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a JSON text, and returns the paths of members that are repeated.
///
/// # Errors
/// When the text is no JSON.
pub(crate) fn read(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut repeated = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = ValueSeed { path: String::new(), repeated: &mut repeated };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, repeated))
}

struct ValueSeed<'a> {
    path: String,
    repeated: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, values.len());
            let seed = ValueSeed { path, repeated: &mut *self.repeated };
            match items.next_element_seed(seed)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = match self.path.is_empty() {
                true => name.clone(),
                false => format!("{}.{name}", self.path),
            };
            let seed = ValueSeed { path: path.clone(), repeated: &mut *self.repeated };
            let value = members.next_value_seed(seed)?;
            if values.insert(name, value).is_some() {
                self.repeated.push(path);
            }
        }
        Ok(Value::Object(values))
    }
}
