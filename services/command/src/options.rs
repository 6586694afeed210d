//! `reveille options`: the options that hold for all parts.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use crate::{
    client::{GatewayClient, parsed},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, show},
    table::{Cell, Table},
};

/// Path of the options.
const PATH: &str = "/options";

/// Options by name.
type Options = Map<String, Value>;

/// Command about options.
#[derive(Debug, Subcommand)]
pub enum OptionsCommand {
    /// Show options with their values
    Get(GetFlags),
    /// Change options; all of them are changed, or none
    Set(SetFlags),
}

/// Flags of `reveille options get`.
#[derive(Debug, Args)]
pub struct GetFlags {
    /// Names of the options [default: all]
    names: Vec<String>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille options set`.
#[derive(Debug, Args)]
pub struct SetFlags {
    /// Options with their new values, such as max_boot_wait_time=1800
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
    values: Vec<(String, Value)>,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Reads a name and a value, which is JSON or else a text.
fn assignment(text: &str) -> Result<(String, Value), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("is no NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// Carries a command out.
///
/// # Errors
/// An option does not exist, or the gateway refuses.
pub(crate) async fn run(command: &OptionsCommand) -> Result<ExitReason, CommandError> {
    match command {
        OptionsCommand::Get(flags) => list(&flags.connection.client()?, &flags.names, &flags.output).await,
        OptionsCommand::Set(flags) => set(&flags.connection.client()?, flags).await,
    }
}

/// Shows the options of these names, or all.
///
/// # Errors
/// An option does not exist, or the gateway refuses.
pub(crate) async fn list(
    client: &GatewayClient,
    names: &[String],
    output: &OutputFlags,
) -> Result<ExitReason, CommandError> {
    let mut options: Options = parsed(PATH, client.get(PATH, &[]).await?)?;
    if let Some(name) = names.iter().find(|name| !options.contains_key(*name)) {
        return Err(CommandError::Missing { kind: "option", name: name.clone() });
    }
    options.retain(|name, _| names.is_empty() || names.contains(name));
    let mut table = Table::new(["OPTION", "VALUE"]);
    for (name, value) in &options {
        table.push([Cell::plain(name), Cell::plain(plain(value))]);
    }
    let names = options.keys().cloned().collect();
    show(output, &Value::Object(options), names, |_| table)?;
    Ok(ExitReason::Done)
}

async fn set(client: &GatewayClient, flags: &SetFlags) -> Result<ExitReason, CommandError> {
    let before: Options = parsed(PATH, client.get(PATH, &[]).await?)?;
    let wanted: Options = flags.values.iter().cloned().collect();
    if let Some(name) = wanted.keys().find(|name| !before.contains_key(*name)) {
        return Err(CommandError::Missing { kind: "option", name: name.clone() });
    }
    let names = wanted.keys().cloned().collect::<Vec<_>>();
    let after: Options = parsed(PATH, client.send(Method::PATCH, PATH, &Value::Object(wanted)).await?)?;
    let mut table = Table::new(["OPTION", "VALUE", "BEFORE"]);
    for name in &names {
        let [after, before] =
            [&after, &before].map(|options| options.get(name).map(plain).unwrap_or_default());
        table.push([Cell::plain(name), Cell::plain(after), Cell::plain(before)]);
    }
    show(&flags.output, &Value::Object(after), names, |_| table)?;
    Ok(ExitReason::Done)
}

/// Returns a value as a user types it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn assignments_are_json_or_texts() {
        for (text, value) in [
            ("a=7", json!(7)),
            ("a=true", json!(true)),
            ("a=DEBUG", json!("DEBUG")),
            ("a=7d", json!("7d")),
            ("a=", json!("")),
            ("a=b=c", json!("b=c")),
        ] {
            assert_eq!(assignment(text), Ok(("a".to_owned(), value)), "{text}");
        }
        for text in ["a", "", "=1"] {
            assert!(assignment(text).is_err(), "{text}");
        }
    }
}
