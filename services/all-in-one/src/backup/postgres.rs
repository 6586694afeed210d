//! Dumps of PostgreSQL, by the programs that come with it.

use std::{path::Path, process::Stdio};

use anyhow::{Context as _, ensure};
use reqwest::Url;
use tokio::process::Command;

/// Most letters of a program's messages in an error.
const LONGEST_MESSAGE: usize = 2_000;

/// Environment variable of the programs for each parameter of an address, with the other names that the parts take for it.
const PARAMETERS: [(&str, &[&str]); 9] = [
    ("PGHOST", &["host"]),
    ("PGHOSTADDR", &["hostaddr"]),
    ("PGPORT", &["port"]),
    ("PGDATABASE", &["dbname"]),
    ("PGUSER", &["user"]),
    ("PGPASSWORD", &["password"]),
    ("PGSSLMODE", &["sslmode", "ssl-mode"]),
    ("PGSSLROOTCERT", &["sslrootcert", "ssl-root-cert", "ssl-ca"]),
    ("PGSSLCERT", &["sslcert", "ssl-cert"]),
];

/// Writes the whole database at `url` to `file`. Parts may write meanwhile: the dump has every commit before its begin, and
/// none after it.
///
/// # Errors
/// `pg_dump` is missing or fails.
pub(super) async fn dump(url: &str, file: &Path) -> anyhow::Result<()> {
    let flags = ["--format=custom", "--no-owner", "--no-privileges", "--file"];
    run(Command::new("pg_dump").args(flags).arg(file), url).await.map(drop)
}

/// Puts the tables of the dump `file` in the place of those of the database at `url`, all or none. Returns their names.
///
/// # Errors
/// `pg_restore` is missing or fails.
pub(super) async fn load(url: &str, file: &Path) -> anyhow::Result<Vec<String>> {
    let listed = run(Command::new("pg_restore").arg("--list").arg(file), url).await?;
    let flags =
        ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", "--dbname"];
    // The name of the database has to be given. An empty one is that of the environment.
    run(Command::new("pg_restore").args(flags).arg("").arg(file), url).await?;
    Ok(tables(&listed))
}

/// Returns the names of the tables in a list of a dump, whose lines are such as `215; 1259 16386 TABLE public sessions owner`.
fn tables(listed: &str) -> Vec<String> {
    let entries = listed.lines().map(|line| line.split_whitespace().skip(3));
    let names = entries.filter_map(|mut words| match (words.next(), words.next()) {
        (Some("TABLE"), Some(schema)) if schema != "DATA" => words.next(),
        _ => None,
    });
    names.map(str::to_owned).collect()
}

/// Runs a program on the database at `url`, and returns what it prints. The address is in the environment, because everybody
/// can read arguments.
async fn run(command: &mut Command, url: &str) -> anyhow::Result<String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let ended = command.envs(environment(url)?).stdin(Stdio::null()).output().await.with_context(|| {
        format!("cannot run {program}, which comes with PostgreSQL (Debian: postgresql-client)")
    })?;
    let message = String::from_utf8_lossy(&ended.stderr);
    let message: String = message.trim().chars().take(LONGEST_MESSAGE).collect();
    ensure!(ended.status.success(), "{program}: {}: {message}", ended.status);
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Returns the address as environment variables. Parameters that concern the parts alone are left out. An error does not repeat
/// the address, since it may hold a password.
fn environment(url: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let url = Url::parse(url).context("no address of a database")?;
    let mut variables: Vec<_> = url
        .query_pairs()
        .filter_map(|(name, value)| {
            let known = PARAMETERS.iter().find(|(_, names)| names.contains(&&*name))?;
            Some((known.0, value.into_owned()))
        })
        .collect();
    let host = url.host_str().map(|host| decoded(host.trim_matches(['[', ']'])));
    let parts = [
        ("PGHOST", host),
        ("PGPORT", url.port().map(|port| port.to_string())),
        ("PGDATABASE", Some(decoded(url.path().trim_start_matches('/')))),
        ("PGUSER", Some(decoded(url.username()))),
        ("PGPASSWORD", url.password().map(decoded)),
    ];
    for (name, value) in parts {
        let value = value.filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|_| !variables.iter().any(|(known, _)| *known == name)) {
            variables.push((name, value));
        }
    }
    variables.sort_unstable();
    Ok(variables)
}

/// Decodes the escapes of a part of an address.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_in_the_environment() {
        for (url, expected) in [
            (
                "postgres://u:p%40ss@db:5432/boot?sslmode=verify-full&statement-cache-capacity=9",
                "PGDATABASE=boot PGHOST=db PGPASSWORD=p@ss PGPORT=5432 PGSSLMODE=verify-full PGUSER=u",
            ),
            (
                "postgres:///boot?host=/run/postgresql&user=u&password=secret&ssl-root-cert=/ca.pem",
                "PGDATABASE=boot PGHOST=/run/postgresql PGPASSWORD=secret PGSSLROOTCERT=/ca.pem PGUSER=u",
            ),
            ("postgresql://[::1]/boot", "PGDATABASE=boot PGHOST=::1"),
        ] {
            let variables = environment(url).unwrap();
            let shown: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(shown.join(" "), expected);
        }
        assert!(!environment("secret").unwrap_err().to_string().contains("secret"));
    }

    #[test]
    fn tables_are_those_of_the_list() {
        let listed = ";\n; Archive created at 2026-02-06\n;\n\
                      215; 1259 16386 TABLE public sessions reveille\n\
                      3374; 0 16386 TABLE DATA public sessions reveille\n\
                      216; 1259 16390 TABLE public revisions reveille\n\
                      3220; 2606 16393 CONSTRAINT public sessions sessions_pkey reveille\n";
        assert_eq!(tables(listed), ["sessions", "revisions"]);
    }

    #[tokio::test]
    async fn failure_has_the_words_of_the_program() {
        let url = "postgres://u:secret@db/boot";
        let error = run(Command::new("cat").arg("/missing"), url).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("cat: ") && text.contains("/missing"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        let error = run(&mut Command::new("no-such-program"), url).await.unwrap_err();
        assert!(error.to_string().contains("postgresql-client"), "{error}");
    }
}
