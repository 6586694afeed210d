//! Input that a rule refuses.

/// A value that breaks a rule, with the field it stands in, so that its author can find and mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Invalid {
    /// Path of the field, such as `desired_state.boot_artifacts.kernel`.
    pub field: String,
    /// Violated rule, for people: lower case, without a full stop.
    pub reason: String,
}

impl Invalid {
    /// Makes the refusal of `field` because of `reason`.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// Puts `outer` before the field, for a value that is nested in another.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        let field = if self.field.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.field) };
        Self { field, reason: self.reason }
    }
}

/// Checks that `text` can be kept: it has between `least` and `most` characters (BOS reference 2.3: lengths are
/// characters), none of which is NUL. BOS takes NUL; here not every database can store it in a text.
///
/// # Errors
/// Names `field` when the text is too short or too long or has a NUL.
pub(crate) fn check_length(field: &str, text: &str, least: usize, most: usize) -> Result<(), Invalid> {
    if text.as_bytes().contains(&0) {
        return Err(Invalid::new(field, "has a NUL character, which no text may have"));
    }
    // A text never has more characters than bytes and a character never has more than four bytes, so most
    // texts are judged without counting.
    if text.len() / 4 >= least && text.len() <= most {
        return Ok(());
    }
    let length = text.chars().count();
    if length < least {
        return Err(Invalid::new(field, format!("has {length} characters but needs at least {least}")));
    }
    if length > most {
        return Err(Invalid::new(field, format!("has {length} characters but may have at most {most}")));
    }
    Ok(())
}
