//! `reveille template`: session templates.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value};

use crate::{
    client::{GatewayClient, named, parsed, segment},
    connection::ConnectionFlags,
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show},
    record::TemplateRecord,
    table::{Cell, Table},
};

/// Path of the templates.
const PATH: &str = "/sessiontemplates";

/// Members of a listed template that are no part of a request.
const ADDRESS: [&str; 3] = ["name", "tenant", "links"];

/// Answer about a template in which nothing is wrong.
const VALID: &str = "Valid";

/// Command about session templates.
#[derive(Debug, Subcommand)]
pub enum TemplateCommand {
    /// Show a template
    Get(NamedFlags),
    /// Store a template from a file in JSON or YAML
    Apply(FileFlags),
    /// Check a stored template, or one in a file without storing it
    Validate(ValidateFlags),
    /// Delete a template
    Delete(NamedFlags),
}

/// Flags of a command about one template.
#[derive(Debug, Args)]
pub struct NamedFlags {
    /// Name of the template
    name: String,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille template apply`.
#[derive(Debug, Args)]
pub struct FileFlags {
    /// Name of the template [default: the member `name` of the file]
    name: Option<String>,
    /// File in JSON or YAML; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Flags of `reveille template validate`.
#[derive(Debug, Args)]
pub struct ValidateFlags {
    /// Name of the template [default: the member `name` of the file]
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    /// File in JSON or YAML, which is checked in place of the stored template; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Template of a file.
#[derive(Debug)]
struct FileTemplate {
    name: String,
    body: Value,
}

/// Carries a command out.
///
/// # Errors
/// The template does not exist or is not valid, its file cannot be read, or the gateway refuses.
pub(crate) async fn run(command: &TemplateCommand) -> Result<ExitReason, CommandError> {
    match command {
        TemplateCommand::Get(flags) => {
            let path = format!("{PATH}/{}", segment(&flags.name));
            let client = flags.connection.client()?;
            let document = client.get(&path, &[]).await.map_err(named("template", &flags.name))?;
            show_one(&flags.output, document)?;
        }
        TemplateCommand::Delete(flags) => {
            let path = format!("{PATH}/{}", segment(&flags.name));
            let client = flags.connection.client()?;
            client.delete(&path).await.map_err(named("template", &flags.name))?;
            print(&format!("template {} deleted\n", flags.name))?;
        }
        TemplateCommand::Apply(flags) => {
            let FileTemplate { name, body } = FileTemplate::read(&flags.file, flags.name.as_deref())?;
            let client = flags.connection.client()?;
            let stored = client.send(Method::PUT, &format!("{PATH}/{}", segment(&name)), &body).await?;
            match flags.output.is_for_people() {
                true => print(&format!("template {name} stored\n"))?,
                false => show_one(&flags.output, stored)?,
            }
        }
        TemplateCommand::Validate(flags) => return validate(flags).await,
    }
    Ok(ExitReason::Done)
}

async fn validate(flags: &ValidateFlags) -> Result<ExitReason, CommandError> {
    let client = flags.connection.client()?;
    let name = match (&flags.file, &flags.name) {
        (Some(file), name) => {
            let FileTemplate { name, body } = FileTemplate::read(file, name.as_deref())?;
            client.send(Method::PUT, &format!("/dryrun{PATH}/{}", segment(&name)), &body).await?;
            name
        }
        (None, name) => {
            let name = name.clone().unwrap_or_default();
            let path = format!("/sessiontemplatesvalid/{}", segment(&name));
            let verdict = client.get(&path, &[]).await.map_err(named("template", &name))?;
            let verdict: String = parsed(&path, verdict)?;
            if verdict != VALID {
                print(&format!("template {name}: {verdict}\n"))?;
                return Ok(ExitReason::Refused);
            }
            name
        }
    };
    print(&format!("template {name} is valid\n"))?;
    Ok(ExitReason::Done)
}

impl FileTemplate {
    /// Reads a file, and takes its name unless another is given.
    fn read(file: &Path, name: Option<&str>) -> Result<Self, CommandError> {
        let failed = |reason: String| CommandError::File { path: file.to_owned(), reason };
        let text = if file == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(file)
        };
        let text = text.map_err(|error| failed(error.to_string()))?;
        Self::parse(&text, name).map_err(failed)
    }

    fn parse(text: &str, name: Option<&str>) -> Result<Self, String> {
        // JSON is YAML too, but its own reader has the better words.
        let mut body: Map<String, Value> = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text).map_err(|error| error.to_string())?,
            false => serde_saphyr::from_str(text).map_err(|error| error.to_string())?,
        };
        let own = body.get("name").and_then(Value::as_str).map(str::to_owned);
        for member in ADDRESS {
            body.remove(member);
        }
        let name = name.map(str::to_owned).or(own);
        let name = name.ok_or("has no member name; give the name of the template as an argument")?;
        Ok(Self { name, body: Value::Object(body) })
    }
}

/// Lists templates by name.
///
/// # Errors
/// The gateway refuses.
pub(crate) async fn list(client: &GatewayClient, output: &OutputFlags) -> Result<ExitReason, CommandError> {
    let mut documents: Vec<Value> = parsed(PATH, client.get(PATH, &[]).await?)?;
    documents.sort_by_key(|template| template["name"].as_str().map(str::to_owned));
    let document = Value::Array(documents);
    let templates: Vec<TemplateRecord> = parsed(PATH, document.clone())?;
    let names = templates.iter().map(|template| template.name.clone()).collect();
    show(output, &document, names, |wide| table(&templates, wide))?;
    Ok(ExitReason::Done)
}

fn show_one(output: &OutputFlags, document: Value) -> Result<(), CommandError> {
    let template: TemplateRecord = parsed(PATH, document.clone())?;
    let name = template.name.clone();
    show(output, &document, vec![name], |_| boot_sets(&template))
}

fn table(templates: &[TemplateRecord], wide: bool) -> Table {
    let mut table = match wide {
        true => Table::new(["NAME", "TENANT", "BOOT SETS", "DESCRIPTION", "NODES", "IMAGES"]),
        false => Table::new(["NAME", "TENANT", "BOOT SETS", "DESCRIPTION"]),
    };
    for template in templates {
        let boot_sets: Vec<_> = template.boot_sets.keys().map(String::as_str).collect();
        let cells = [
            Cell::plain(&template.name),
            Cell::plain(&template.tenant),
            Cell::plain(boot_sets.join(",")),
            Cell::plain(&template.description),
        ];
        if !wide {
            table.push(cells);
            continue;
        }
        let nodes: Vec<_> = template.boot_sets.values().flat_map(|boot_set| boot_set.nodes()).collect();
        let images: Vec<_> = template.boot_sets.values().map(|boot_set| boot_set.path.as_str()).collect();
        let [name, tenant, sets, description] = cells;
        table.push([
            name,
            tenant,
            sets,
            description,
            Cell::plain(nodes.join(",")),
            Cell::plain(images.join(",")),
        ]);
    }
    table
}

/// Returns one template as a table of its boot sets.
fn boot_sets(template: &TemplateRecord) -> Table {
    let mut table = Table::new(["BOOT SET", "IMAGE", "NODES"]);
    for (name, boot_set) in &template.boot_sets {
        let nodes: Vec<_> = boot_set.nodes().collect();
        table.push([Cell::plain(name), Cell::plain(&boot_set.path), Cell::plain(nodes.join(","))]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_read_from_json_and_yaml() {
        let body = json!({"boot_sets": {"a": {"path": "s3://b/m", "node_list": ["x1"]}}});
        let texts = [
            r#"{"name": "t", "tenant": null, "boot_sets": {"a": {"path": "s3://b/m", "node_list": ["x1"]}}}"#,
            "name: t\nboot_sets:\n  a:\n    path: s3://b/m\n    node_list: [x1]\n",
        ];
        for text in texts {
            let template = FileTemplate::parse(text, None).unwrap();
            assert_eq!((&*template.name, &template.body), ("t", &body), "{text}");
            assert_eq!(FileTemplate::parse(text, Some("other")).unwrap().name, "other");
        }
        for text in ["{\"boot_sets\": {}}", "{", "- a", ""] {
            assert!(FileTemplate::parse(text, None).is_err(), "{text}");
        }
    }
}
