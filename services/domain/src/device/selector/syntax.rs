//! Syntax of selectors: `key`, `!key`, `key OPERATOR value`, `key in (a, b)`.

use crate::core::invalid::Invalid;

/// Operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SelectorOperator {
    Exists,
    DoesNotExist,
    Equals,
    NotEquals,
    In,
    NotIn,
    Contains,
    NotContains,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl SelectorOperator {
    /// The operator that holds exactly where this one does not, if this one is a negation.
    pub(crate) fn negated(self) -> Option<Self> {
        match self {
            Self::DoesNotExist => Some(Self::Exists),
            Self::NotEquals => Some(Self::Equals),
            Self::NotIn => Some(Self::In),
            Self::NotContains => Some(Self::Contains),
            Self::Exists
            | Self::Equals
            | Self::In
            | Self::Contains
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual => None,
        }
    }
}

/// Requirement as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawRequirement {
    pub key: String,
    pub operator: SelectorOperator,
    pub values: Vec<String>,
}

/// Operators as symbols. A symbol stands before its own beginnings.
const SYMBOLS: [(&str, SelectorOperator); 8] = [
    ("==", SelectorOperator::Equals),
    ("!=", SelectorOperator::NotEquals),
    (">=", SelectorOperator::GreaterOrEqual),
    ("<=", SelectorOperator::LessOrEqual),
    ("=", SelectorOperator::Equals),
    (">", SelectorOperator::Greater),
    ("<", SelectorOperator::Less),
    ("!", SelectorOperator::DoesNotExist),
];

/// Operators as words.
const WORDS: [(&str, SelectorOperator); 5] = [
    ("in", SelectorOperator::In),
    ("notin", SelectorOperator::NotIn),
    ("contains", SelectorOperator::Contains),
    ("notcontains", SelectorOperator::NotContains),
    ("exists", SelectorOperator::Exists),
];

/// Reads a selector. An empty one has no requirements.
///
/// # Errors
/// Names `field` and the first requirement that cannot be read.
pub(crate) fn parse(field: &str, text: &str) -> Result<Vec<RawRequirement>, Invalid> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let requirements = split(text).map_err(|reason| Invalid::new(field, reason))?;
    let read = requirements.into_iter().map(|requirement| {
        let refused = || Invalid::new(field, format!("'{requirement}' is no requirement"));
        parse_requirement(requirement.trim()).ok_or_else(refused)
    });
    read.collect()
}

/// Splits a selector at the commas outside of parentheses. A backslash takes the meaning of the character after it.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut is_inside = false;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' if is_inside => return Err(format!("'{text}' has a parenthesis within another")),
            '(' => is_inside = true,
            ')' if !is_inside => return Err(format!("'{text}' closes a parenthesis that is not open")),
            ')' => is_inside = false,
            ',' if !is_inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_inside || is_escaped {
        return Err(format!("'{text}' ends too early"));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn parse_requirement(text: &str) -> Option<RawRequirement> {
    if let Some(key) = text.strip_prefix('!') {
        return requirement(key.trim(), SelectorOperator::DoesNotExist, Vec::new());
    }
    let end = text.find(|c: char| c.is_whitespace() || "=!<>(".contains(c)).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let rest = rest.trim();
    if rest.is_empty() {
        return requirement(key, SelectorOperator::Exists, Vec::new());
    }
    let (operator, rest) = operator(rest)?;
    requirement(key, operator, values(operator, rest.trim())?)
}

fn requirement(key: &str, operator: SelectorOperator, values: Vec<String>) -> Option<RawRequirement> {
    let is_key = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "=!<>()".contains(c));
    is_key.then(|| RawRequirement { key: key.to_owned(), operator, values })
}

fn operator(text: &str) -> Option<(SelectorOperator, &str)> {
    let symbol =
        SYMBOLS.into_iter().find_map(|(symbol, operator)| Some((operator, text.strip_prefix(symbol)?)));
    symbol.or_else(|| {
        let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, operator)| (operator, rest))
    })
}

fn values(operator: SelectorOperator, text: &str) -> Option<Vec<String>> {
    match operator {
        SelectorOperator::Exists | SelectorOperator::DoesNotExist => text.is_empty().then(Vec::new),
        SelectorOperator::In | SelectorOperator::NotIn => {
            let list = text.strip_prefix('(')?.strip_suffix(')')?;
            Some(list.split(',').map(|value| unescaped(value.trim())).collect())
        }
        SelectorOperator::Contains | SelectorOperator::NotContains if text.is_empty() => None,
        SelectorOperator::Equals
        | SelectorOperator::NotEquals
        | SelectorOperator::Contains
        | SelectorOperator::NotContains
        | SelectorOperator::Greater
        | SelectorOperator::GreaterOrEqual
        | SelectorOperator::Less
        | SelectorOperator::LessOrEqual => {
            let is_list = text.starts_with('(');
            (!is_list).then(|| vec![unescaped(text)])
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut is_escaped = false;
    let kept = text.chars().filter(|character| {
        is_escaped = *character == '\\' && !is_escaped;
        !is_escaped
    });
    kept.collect()
}
