//! Ids, names and words in paths and query parameters (BOS reference 2.3, 2.6.1).

use super::wire::{
    primitive::{ComponentId, LONGEST_ID, ResourceName, is_name},
    words::EnumWord,
};
use crate::http::{extract::PathName, problem::RequestProblem};

impl PathName<ResourceName> {
    /// Returns the name of a session or session template.
    ///
    /// # Errors
    /// When no session or template can have that name.
    pub(crate) fn name(self) -> Result<String, RequestProblem> {
        let name = self.into_text();
        if is_name(&name) {
            return Ok(name);
        }
        Err(RequestProblem::bad_request(format!("the path has '{name}', which is no name")))
    }
}

impl PathName<ComponentId> {
    /// Returns the id of a component.
    ///
    /// # Errors
    /// When the id is too long.
    pub(crate) fn id(self) -> Result<String, RequestProblem> {
        let id = self.into_text();
        if id.chars().count() <= LONGEST_ID {
            return Ok(id);
        }
        Err(RequestProblem::bad_request(format!("the path has an id of more than {LONGEST_ID} characters")))
    }
}

/// Returns the name of a session.
///
/// # Errors
/// When no session can have that name.
pub(crate) fn session_name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("is not the name of a session".to_owned()) }
}

/// Returns the variant of an enum with that word.
///
/// # Errors
/// When no variant has the word; the error lists the words.
pub(crate) fn word<E: EnumWord>(text: &str) -> Result<E, String> {
    E::parse(text).ok_or_else(|| format!("'{text}' is not one of {}", E::choices()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::component::Phase;

    use super::*;
    use crate::http::query::tests::check;

    #[tokio::test]
    async fn names_of_sessions_follow_the_pattern() {
        let longest = format!("x={}", "s".repeat(127));
        let longer = format!("x={}", "s".repeat(128));
        check(
            &["x=a", "x=a.b-c_D9", "x=", "x=-a", "x=a-", "x=bad%20name", &longest, &longer],
            |query| query.parsed("x", session_name),
            expect![[r#"
                x=a -> Some("a")
                x=a.b-c_D9 -> Some("a.b-c_D9")
                x= -> query parameter 'x': is not the name of a session
                x=-a -> query parameter 'x': is not the name of a session
                x=a- -> query parameter 'x': is not the name of a session
                x=bad%20name -> query parameter 'x': is not the name of a session
                x=sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss -> Some("sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss")
                x=ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss -> query parameter 'x': is not the name of a session
            "#]],
        )
        .await;
    }

    #[tokio::test]
    async fn words_are_those_of_the_contract() {
        check(
            &["", "x=", "x=configuring", "x=Configuring", "x=hmm"],
            |query| query.parsed("x", word::<Phase>),
            expect![[r#"
                 -> None
                x= -> Some(None)
                x=configuring -> Some(Configuring)
                x=Configuring -> query parameter 'x': 'Configuring' is not one of '', 'configuring', 'powering_off', 'powering_on'
                x=hmm -> query parameter 'x': 'hmm' is not one of '', 'configuring', 'powering_off', 'powering_on'
            "#]],
        )
        .await;
    }
}
