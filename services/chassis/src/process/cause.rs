//! The text of an error that ends a program.

/// The text of an error with its root cause first, in plain words, followed by the contexts from the outside in:
/// `Address already in use (gateway.listen: cannot listen on 127.0.0.1:7700)`.
pub fn cause_first(error: &anyhow::Error) -> String {
    let chain: Vec<_> = error.chain().map(ToString::to_string).collect();
    // Many errors repeat the text of their cause.
    let causes = chain.iter().skip(1);
    let own = |(text, cause): (&String, &String)| {
        text.strip_suffix(cause).unwrap_or(text).trim_end_matches([':', ' ']).to_owned()
    };
    let texts: Vec<_> = chain.iter().zip(causes).map(own).filter(|text| !text.is_empty()).collect();
    let root = chain.last().map(String::as_str).unwrap_or_default();
    let (cause, details) = match root.split_once('\n') {
        Some((cause, details)) => (cause, Some(details)),
        None => (root, None),
    };
    let mut text = plain(cause).to_owned();
    if !texts.is_empty() {
        text = format!("{text} ({})", texts.join(": "));
    }
    match details {
        Some(details) => format!("{text}\n{details}"),
        None => text,
    }
}

/// The root cause of an error, in plain words.
pub(crate) fn root(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    plain(&root.to_string()).to_owned()
}

/// The words of the system or the database without their number.
fn plain(cause: &str) -> &str {
    let cause = cause.strip_prefix("error returned from database: ").unwrap_or(cause);
    let cause = match cause.strip_prefix("(code: ").and_then(|rest| rest.split_once(") ")) {
        Some((_, words)) => words,
        None => cause,
    };
    match cause.rsplit_once(" (os error ") {
        Some((words, number)) if number.ends_with(')') => words,
        Some(_) | None => cause,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use expect_test::expect;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error communicating with database: {0}")]
    struct Repeating(#[source] std::io::Error);

    #[test]
    fn the_root_cause_comes_first() {
        let busy = || std::io::Error::from_raw_os_error(98);
        let errors = [
            anyhow!("power.pcs.url: is not set"),
            anyhow!("error returned from database: (code: 14) unable to open database file"),
            anyhow!(busy()).context("gateway.listen: cannot listen on 127.0.0.1:7700"),
            anyhow!(Repeating(busy()))
                .context("database postgres://db/registry")
                .context("component registry"),
            anyhow!("TOML parse error at line 1\n  |\n1 | a = \n").context("settings, with bad.toml"),
            Err::<(), _>(busy()).context("").unwrap_err(),
        ];
        let texts: String = errors.iter().map(|error| format!("{}\n", cause_first(error))).collect();
        expect![[r#"
            power.pcs.url: is not set
            unable to open database file
            Address already in use (gateway.listen: cannot listen on 127.0.0.1:7700)
            Address already in use (component registry: database postgres://db/registry: error communicating with database)
            TOML parse error at line 1 (settings, with bad.toml)
              |
            1 | a = 

            Address already in use
        "#]].assert_eq(&texts);
    }
}
