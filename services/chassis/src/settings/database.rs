//! How each part uses its database.

use serde::{Deserialize, Serialize};

/// Use of the database by each part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// Most connections of a part to PostgreSQL for its reads and writes. Three more are reserved: for hints, for polls
    /// of other replicas' commits, and for leases. SQLite always has one.
    pub connections: u32,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self { connections: 4 }
    }
}

/// Returns `url` without credentials: without its user, and without its parameters, one of which may be the password.
/// The path of an SQLite file is no secret.
pub(crate) fn without_password(url: &str) -> String {
    if url.is_empty() || url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (place, parameters) = rest.split_once('?').map_or((rest, ""), |(place, _)| (place, "?…"));
    match (place.rsplit_once('@'), rest.contains('@')) {
        (Some((_, host)), _) => format!("{scheme}://…@{host}{parameters}"),
        // Either of the two may have stood in a password.
        (None, true) => format!("{scheme}://…"),
        (None, false) => format!("{scheme}://{place}{parameters}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn an_address_shows_without_what_opens_the_database() {
        let mut table = String::new();
        for url in [
            "",
            "sqlite:///data/registry.sqlite?mode=rwc",
            "postgres://db.example:5432/bos",
            "postgres://bos:s3cret@db.example/bos",
            "postgres://bos:s3cret@more@db.example/bos?sslmode=require&password=s3cret",
            "postgresql://db.example/bos?password=s3cret",
            "postgresql://db.example/bos?password=s3cret@",
            "postgres://bos:s3cret?@db.example/bos",
            "sqlite::memory:",
            "mysql://bos:s3cret@db.example",
            "bos:s3cret@db.example",
        ] {
            let shown = without_password(url);
            assert!(!shown.contains("s3cret"), "{shown}");
            writeln!(table, "{shown}").unwrap();
        }
        expect![[r#"

            sqlite:///data/registry.sqlite?mode=rwc
            postgres://db.example:5432/bos
            postgres://…@db.example/bos
            postgres://…@db.example/bos?…
            postgresql://db.example/bos?…
            postgresql://…
            postgres://…
            sqlite::memory:
            mysql://…@db.example
            …
        "#]]
        .assert_eq(&table);
    }
}
