//! Names of things, checked once at the edge and valid from then on (BOS reference 2.3).

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::core::{
    invalid::{Invalid, check_length},
    limits::LONGEST_NAME,
};

/// Identity of a component, as a rule its xname: 1 to 127 characters of any kind. Ordered by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(Arc<str>);

impl ComponentId {
    /// Parses `text` as an id.
    ///
    /// # Errors
    /// When the text is empty or longer than 127 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_length("id", text, 1, LONGEST_NAME)?;
        Ok(Self(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as text that shares the memory of the id.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Borrow<str> for ComponentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the pattern that session, template and boot set names share: letters, digits and `-._`, with a
/// letter or digit at both ends, at most 127 characters.
///
/// # Errors
/// Names `field` and the part of the pattern that is broken.
pub fn check_name(field: &str, text: &str) -> Result<(), Invalid> {
    check_length(field, text, 1, LONGEST_NAME)?;
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if !edge(text.as_bytes().first()) || !edge(text.as_bytes().last()) {
        return Err(Invalid::new(field, format!("'{text}' must begin and end with a letter or a digit")));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || "-._".contains(*c))) {
        Some(odd) => Err(Invalid::new(
            field,
            format!("'{text}' has '{odd}', only letters, digits and -._ are allowed"),
        )),
        None => Ok(()),
    }
}

/// Owner of sessions and templates: a tenant, or nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(String);

impl Tenant {
    /// Parses `text` as a tenant; empty means that there is none.
    ///
    /// # Errors
    /// When the text is longer than 127 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_length("tenant", text, 0, LONGEST_NAME)?;
        Ok(Self(text.to_owned()))
    }

    /// No tenant.
    pub fn none() -> Self {
        Self::default()
    }

    /// The name; empty for none.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no tenant.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_pattern() {
        for good in ["a", "a.b-c_d", "0", &"s".repeat(127)] {
            assert_eq!(check_name("name", good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "ä", ".", &"s".repeat(128)] {
            assert!(check_name("name", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn component_ids_may_hold_anything_but_too_much() {
        assert!(ComponentId::parse("not an xname!").is_ok());
        assert!(ComponentId::parse(&"ä".repeat(127)).is_ok());
        assert!(ComponentId::parse("").is_err());
        assert!(ComponentId::parse(&"x".repeat(128)).is_err());
    }
}
