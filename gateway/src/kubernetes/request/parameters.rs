//! Query parameters. Unknown ones are ignored, empty pairs tolerated, and of a repeated one the first counts.

use percent_encoding::percent_decode_str;

use super::super::failure::ApiFailure;

/// Parameters of a request, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiParameters(Vec<(String, String)>);

impl ApiParameters {
    /// Reads the query of an address.
    pub(crate) fn read(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(decoded_pair).collect())
    }

    /// Returns a text; none if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns whether a parameter is `true` or `1`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1" | "True"))
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// When the value is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiFailure> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse();
        number
            .map(Some)
            .map_err(|_| ApiFailure::bad_request(format!("invalid {name} \"{text}\": no whole number")))
    }
}

fn decoded_pair((name, value): (&str, &str)) -> (String, String) {
    (decoded(name), decoded(value))
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
