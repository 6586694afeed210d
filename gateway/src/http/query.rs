//! Query parameters.

use std::{convert::Infallible, ops::RangeInclusive};

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use super::problem::RequestProblem;

/// The parameters of a request, decoded but not yet read as text. Unknown parameters are ignored unless a path refuses
/// them, and of a repeated parameter the last counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryParameters(Vec<(Vec<u8>, Vec<u8>)>);

impl QueryParameters {
    /// Returns a truth value, in any letter case.
    ///
    /// # Errors
    /// When the value is anything else, such as `1` or empty.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, RequestProblem> {
        self.last(name)?
            .map(|text| match text {
                _ if text.eq_ignore_ascii_case("true") => Ok(true),
                _ if text.eq_ignore_ascii_case("false") => Ok(false),
                _ => Err(wrong_type("boolean", name)),
            })
            .transpose()
    }

    /// Returns a decimal number within `range`.
    ///
    /// # Errors
    /// When the value is no integer or out of range.
    pub(crate) fn integer(
        &self,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, RequestProblem> {
        let Some(text) = self.last(name)? else { return Ok(None) };
        let number: i128 = text.parse().map_err(|_| wrong_type("integer", name))?;
        let fits = u32::try_from(number).ok().filter(|number| range.contains(number));
        fits.map(Some).ok_or_else(|| {
            RequestProblem::of_parameter(
                name,
                &format!("{number} is not between {} and {}", range.start(), range.end()),
            )
        })
    }

    /// Returns a text with a number of characters within `lengths`.
    ///
    /// # Errors
    /// When the text is too short or too long.
    pub(crate) fn text(
        &self,
        name: &str,
        lengths: RangeInclusive<usize>,
    ) -> Result<Option<&str>, RequestProblem> {
        let Some(text) = self.last(name)? else { return Ok(None) };
        let length = text.chars().count();
        if lengths.contains(&length) {
            return Ok(Some(text));
        }
        let why = format!("has {length} characters, not between {} and {}", lengths.start(), lengths.end());
        Err(RequestProblem::of_parameter(name, &why))
    }

    /// Returns the texts of a list with commas between them; none if the parameter is missing. The list has at most
    /// `most` items and `longest` characters.
    ///
    /// # Errors
    /// When the list is empty or too long, or an item is empty.
    pub(crate) fn texts(
        &self,
        name: &str,
        most: usize,
        longest: usize,
    ) -> Result<Vec<String>, RequestProblem> {
        let Some(list) = self.text(name, 1..=longest)? else { return Ok(Vec::new()) };
        let items: Vec<_> = list.split(',').map(str::to_owned).collect();
        if items.iter().any(String::is_empty) {
            return Err(RequestProblem::of_parameter(name, "has an empty item"));
        }
        if items.len() > most {
            return Err(RequestProblem::of_parameter(
                name,
                &format!("has {} items, more than {most}", items.len()),
            ));
        }
        Ok(items)
    }

    /// Returns a text parsed by `parse`.
    ///
    /// # Errors
    /// When `parse` refuses the text; its error has the reason.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, RequestProblem> {
        let Some(text) = self.last(name)? else { return Ok(None) };
        parse(text).map(Some).map_err(|why| RequestProblem::of_parameter(name, &why))
    }

    /// Refuses parameters of other names than these.
    ///
    /// # Errors
    /// Names the first one.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), RequestProblem> {
        let is_known = |key: &[u8]| names.iter().any(|name| name.as_bytes() == key);
        match self.0.iter().find(|(key, _)| !is_known(key)) {
            Some((key, _)) => {
                let why = format!("is unknown; known are {}", names.join(", "));
                Err(RequestProblem::of_parameter(&String::from_utf8_lossy(key), &why))
            }
            None => Ok(()),
        }
    }

    /// Returns whether the parameter was given at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name.as_bytes())
    }

    fn last(&self, name: &str) -> Result<Option<&str>, RequestProblem> {
        let Some((_, value)) = self.0.iter().rev().find(|(key, _)| key == name.as_bytes()) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value)
            .map_err(|_| RequestProblem::of_parameter(name, "is not valid UTF-8"))?;
        if text.contains('\0') {
            return Err(RequestProblem::of_parameter(name, "has a NUL character, which no text may have"));
        }
        Ok(Some(text))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Ok(Self(pairs.collect()))
    }
}

/// Returns the decoded bytes of a part of the query.
fn decoded(text: &str) -> Vec<u8> {
    percent_decode_str(&text.replace('+', " ")).collect()
}

fn wrong_type(kind: &str, name: &str) -> RequestProblem {
    RequestProblem::bad_request(format!("Wrong type, expected '{kind}' for query parameter '{name}'"))
}

#[cfg(test)]
pub(crate) mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Returns the parameters in `text`.
    pub(crate) async fn query(text: &str) -> QueryParameters {
        let request = http::Request::get(format!("/?{text}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let Ok(query) = QueryParameters::from_request_parts(&mut parts, &()).await;
        query
    }

    pub(crate) async fn check<T: std::fmt::Debug>(
        texts: &[&str],
        read: fn(&QueryParameters) -> Result<T, RequestProblem>,
        expected: Expect,
    ) {
        let mut lines = String::new();
        for text in texts {
            let outcome = match read(&query(text).await) {
                Ok(value) => format!("{value:?}"),
                Err(problem) => problem.detail,
            };
            lines.push_str(&format!("{text} -> {outcome}\n"));
        }
        expected.assert_eq(&lines);
    }

    #[tokio::test]
    async fn lists_have_items_up_to_a_number() {
        check(
            &["", "x=", "x=a", "x=a,b", "x=a,", "x=a,b,c", "x=abcdef"],
            |query| query.texts("x", 2, 5),
            expect![[r#"
                 -> []
                x= -> query parameter 'x': has 0 characters, not between 1 and 5
                x=a -> ["a"]
                x=a,b -> ["a", "b"]
                x=a, -> query parameter 'x': has an empty item
                x=a,b,c -> query parameter 'x': has 3 items, more than 2
                x=abcdef -> query parameter 'x': has 6 characters, not between 1 and 5
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn booleans_are_words_in_any_case() {
        check(
            &["", "x=true", "x=True", "x=FALSE", "x=1", "x=", "x=maybe", "x=maybe&x=true", "y=true"],
            |query| query.boolean("x"),
            expect![[r#"
                 -> None
                x=true -> Some(true)
                x=True -> Some(true)
                x=FALSE -> Some(false)
                x=1 -> Wrong type, expected 'boolean' for query parameter 'x'
                x= -> Wrong type, expected 'boolean' for query parameter 'x'
                x=maybe -> Wrong type, expected 'boolean' for query parameter 'x'
                x=maybe&x=true -> Some(true)
                y=true -> None
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn integers_are_decimal_and_within_range() {
        check(
            &["", "x=0", "x=7", "x=8", "x=-1", "x=x", "x=1.5", "x=", "x=99999999999999999999", "x=9&x=1"],
            |query| query.integer("x", 0..=7),
            expect![[r#"
                 -> None
                x=0 -> Some(0)
                x=7 -> Some(7)
                x=8 -> query parameter 'x': 8 is not between 0 and 7
                x=-1 -> query parameter 'x': -1 is not between 0 and 7
                x=x -> Wrong type, expected 'integer' for query parameter 'x'
                x=1.5 -> Wrong type, expected 'integer' for query parameter 'x'
                x= -> Wrong type, expected 'integer' for query parameter 'x'
                x=99999999999999999999 -> query parameter 'x': 99999999999999999999 is not between 0 and 7
                x=9&x=1 -> Some(1)
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn texts_have_lengths_in_characters() {
        check(
            &[
                "",
                "x=",
                "x",
                "x=a",
                "x=%C3%A4%C3%B6",
                "x=abc",
                "x=a%20b",
                "x=a+&x=b",
                "x=%ff",
                "x=%00",
                "%78=a",
                "x=%zz",
            ],
            |query| query.text("x", 1..=2).map(|text| text.map(str::to_owned)),
            expect![[r#"
                 -> None
                x= -> query parameter 'x': has 0 characters, not between 1 and 2
                x -> query parameter 'x': has 0 characters, not between 1 and 2
                x=a -> Some("a")
                x=%C3%A4%C3%B6 -> Some("äö")
                x=abc -> query parameter 'x': has 3 characters, not between 1 and 2
                x=a%20b -> query parameter 'x': has 3 characters, not between 1 and 2
                x=a+&x=b -> Some("b")
                x=%ff -> query parameter 'x': is not valid UTF-8
                x=%00 -> query parameter 'x': has a NUL character, which no text may have
                %78=a -> Some("a")
                x=%zz -> query parameter 'x': has 3 characters, not between 1 and 2
            "#]],
        )
        .await;
    }
}
