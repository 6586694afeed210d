//! Parameters of templates: `{{ .metadata.name }}`, `{{ .metadata.labels.site }}`, and functions of these.
//!
//! The syntax is the part of Go's templates that the contract documents: fields, texts in quotation marks, the
//! functions `upper`, `lower`, `replace`, `index` and `getOrDefault`, and pipelines of them. There are no conditions and
//! no loops.

use std::sync::Arc;

use crate::device::record::{DeviceLabels, DeviceMeta};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const NAME: &str = ".metadata.name";
const LABELS: &str = ".metadata.labels";

/// Parameter that cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter '{parameter}': {flaw}")]
pub struct ParameterError {
    /// Parameter as it stands in the template.
    pub parameter: String,
    /// Flaw of it.
    pub flaw: ParameterFlaw,
}

/// Flaw of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterFlaw {
    /// The device lacks the label.
    #[error("the device has no label '{0}'")]
    MissingLabel(String),
    /// A name that the spec needs would be empty.
    #[error("gives an empty name")]
    Empty,
    /// The braces do not close.
    #[error("the braces do not close")]
    Open,
    /// The expression cannot be read.
    #[error("is not a field or a function of the device's name and labels")]
    Unreadable,
}

/// Returns whether a text has parameters.
pub fn has_parameters(text: &str) -> bool {
    text.contains(OPEN)
}

/// Returns the text with every parameter filled.
///
/// # Errors
/// Names the first parameter that cannot be filled.
pub fn substitute(text: &Arc<str>, meta: &DeviceMeta) -> Result<Arc<str>, ParameterError> {
    if !has_parameters(text) {
        return Ok(Arc::clone(text));
    }
    let mut filled = String::new();
    let mut rest = &**text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        filled.push_str(before);
        let end = end_of(after).ok_or_else(|| error(after, ParameterFlaw::Open))?;
        let parameter = &after[..end];
        filled.push_str(&value(parameter, meta).map_err(|flaw| error(parameter, flaw))?);
        rest = &after[end + CLOSE.len()..];
    }
    filled.push_str(rest);
    Ok(filled.into())
}

fn error(parameter: &str, flaw: ParameterFlaw) -> ParameterError {
    ParameterError { parameter: parameter.trim().to_owned(), flaw }
}

/// Returns the place of the closing braces, which may also stand within a text.
fn end_of(text: &str) -> Option<usize> {
    let mut is_text = false;
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            _ if !is_text && text[at..].starts_with(CLOSE) => return Some(at),
            _ => {}
        }
        None
    })
}

/// Word of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ParameterWord {
    Name(String),
    Text(String),
    Pipe,
}

fn value(parameter: &str, meta: &DeviceMeta) -> Result<String, ParameterFlaw> {
    let words = words(parameter).ok_or(ParameterFlaw::Unreadable)?;
    let mut piped = None;
    for stage in words.split(|word| *word == ParameterWord::Pipe) {
        piped = Some(stage_value(stage, piped, meta)?);
    }
    piped.ok_or(ParameterFlaw::Unreadable)
}

fn words(parameter: &str) -> Option<Vec<ParameterWord>> {
    let mut words = Vec::new();
    let mut rest = parameter.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '|' => (ParameterWord::Pipe, &rest[1..]),
            '"' => quoted(&rest[1..])?,
            _ => {
                let is_end = |c: char| c.is_whitespace() || c == '|' || c == '"';
                let (name, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
                (ParameterWord::Name(name.to_owned()), after)
            }
        };
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

fn quoted(text: &str) -> Option<(ParameterWord, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((ParameterWord::Text(value), &text[at + 1..])),
            (_, '\\') => value.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            (_, other) => value.push(other),
        }
    }
}

/// Returns the value of one stage of a pipeline. The value of the stage before is its last argument.
fn stage_value(
    stage: &[ParameterWord],
    piped: Option<String>,
    meta: &DeviceMeta,
) -> Result<String, ParameterFlaw> {
    let Some((ParameterWord::Name(function), arguments)) = stage.split_first() else {
        return match (stage, piped) {
            ([ParameterWord::Text(text)], None) => Ok(text.clone()),
            _ => Err(ParameterFlaw::Unreadable),
        };
    };
    if function.starts_with('.') {
        let is_alone = arguments.is_empty() && piped.is_none();
        return if is_alone { field(function, meta) } else { Err(ParameterFlaw::Unreadable) };
    }
    if let ("index" | "getOrDefault", None) = (function.as_str(), &piped) {
        return look_up(arguments, function == "index", &meta.labels);
    }
    let mut texts = arguments.iter().map(|word| text(word, meta)).collect::<Result<Vec<_>, _>>()?;
    texts.extend(piped);
    apply(function, &texts)
}

fn apply(function: &str, texts: &[String]) -> Result<String, ParameterFlaw> {
    match (function, texts) {
        ("upper", [text]) => Ok(text.to_uppercase()),
        ("lower", [text]) => Ok(text.to_lowercase()),
        ("replace", [old, new, text]) => Ok(text.replace(old.as_str(), new)),
        _ => Err(ParameterFlaw::Unreadable),
    }
}

fn text(word: &ParameterWord, meta: &DeviceMeta) -> Result<String, ParameterFlaw> {
    match word {
        ParameterWord::Text(text) => Ok(text.clone()),
        ParameterWord::Name(name) => field(name, meta),
        ParameterWord::Pipe => Err(ParameterFlaw::Unreadable),
    }
}

/// A label whose key is more than letters, digits and `_` has no field: `index` reads it.
fn field(path: &str, meta: &DeviceMeta) -> Result<String, ParameterFlaw> {
    if path == NAME {
        return Ok(meta.name.as_str().to_owned());
    }
    let key = path.strip_prefix(LABELS).and_then(|rest| rest.strip_prefix('.'));
    let is_field = |key: &&str| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
    let key = key.filter(is_field).ok_or(ParameterFlaw::Unreadable)?;
    let value = meta.labels.get(key).ok_or_else(|| ParameterFlaw::MissingLabel(key.to_owned()))?;
    Ok(value.to_string())
}

/// Looks a label up. A missing one is empty for `index`, and the default for `getOrDefault`.
fn look_up(
    arguments: &[ParameterWord],
    is_index: bool,
    labels: &DeviceLabels,
) -> Result<String, ParameterFlaw> {
    let [ParameterWord::Name(map), ParameterWord::Text(key), default @ ..] = arguments else {
        return Err(ParameterFlaw::Unreadable);
    };
    let default = match (is_index, default) {
        (true, []) => "",
        (false, [ParameterWord::Text(default)]) => default,
        _ => return Err(ParameterFlaw::Unreadable),
    };
    if map != LABELS {
        return Err(ParameterFlaw::Unreadable);
    }
    Ok(labels.get(key.as_str()).map_or(default, |value| value).to_owned())
}
