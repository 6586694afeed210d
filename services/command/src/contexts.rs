//! Kept contexts: addresses of gateways with CA and token, in a file of the user.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::{
    error::{CommandError, ExitReason},
    output::{OutputFlags, print, show},
    table::{Cell, Table},
};

/// Variable that names another file.
const FILE: &str = "REVEILLE_CONTEXT_FILE";

/// Command about contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// Keep the address of a gateway, or replace it; the first one becomes the current one
    Add(AddFlags),
    /// Make a kept context the current one
    Use {
        /// Name of the context
        name: String,
    },
    /// List the kept contexts
    List(OutputFlags),
    /// Forget a context
    Remove {
        /// Name of the context
        name: String,
    },
}

/// Flags of `reveille context add`.
#[derive(Debug, Args)]
pub struct AddFlags {
    /// Name of the context
    name: String,
    /// Address of the gateway, such as https://reveille.example:7700
    #[arg(long, value_name = "URL")]
    url: String,
    /// PEM file with the certificates of the authority that is trusted
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// File with the token, which is read at each use
    #[arg(long, value_name = "FILE", conflicts_with = "token_stdin")]
    token_file: Option<PathBuf>,
    /// Read the token from standard input and keep it in the file of the contexts
    #[arg(long)]
    token_stdin: bool,
    /// Tenant on whose behalf to ask
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

/// File with the kept contexts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ContextFile {
    /// Context that is used if no other is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    pub contexts: BTreeMap<String, GatewayContext>,
}

/// Gateway with CA and token.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl ContextFile {
    /// Reads the file; a missing one holds no contexts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read() -> Result<Self, CommandError> {
        let Some(path) = path() else { return Ok(Self::default()) };
        let failed = |reason: String| CommandError::File { path: path.clone(), reason };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| failed(error.message().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Replaces the file by one that only its owner may read, because contexts hold tokens.
    fn write(&self) -> Result<PathBuf, CommandError> {
        let path = path().ok_or_else(|| CommandError::Usage {
            what: "there is no home directory to keep contexts in".to_owned(),
            next: "REVEILLE_CONTEXT_FILE names a file",
        })?;
        let failed = |reason: String| CommandError::File { path: path.clone(), reason };
        let text = toml::to_string(self).map_err(|error| failed(error.to_string()))?;
        replace(&path, &text).map_err(|error| failed(error.to_string()))?;
        Ok(path)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["CURRENT", "NAME", "URL", "TENANT", "CA FILE", "TOKEN"]);
        for (name, context) in &self.contexts {
            let token = match (&context.token, &context.token_file) {
                (Some(_), _) => "kept".to_owned(),
                (None, Some(file)) => file.display().to_string(),
                (None, None) => String::new(),
            };
            let is_current = self.current.as_ref() == Some(name);
            table.push([
                Cell::plain(if is_current { "*" } else { "" }),
                Cell::plain(name),
                Cell::plain(context.url.as_deref().unwrap_or_default()),
                Cell::plain(context.tenant.as_deref().unwrap_or_default()),
                Cell::plain(
                    context.ca_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
                ),
                Cell::plain(token),
            ]);
        }
        table
    }

    /// Returns the contexts as a document, without tokens.
    fn document(&self) -> serde_json::Value {
        let contexts = self.contexts.iter().map(|(name, context)| {
            serde_json::json!({
                "name": name, "current": self.current.as_ref() == Some(name), "url": context.url,
                "tenant": context.tenant, "ca_file": context.ca_file, "token_file": context.token_file,
            })
        });
        contexts.collect()
    }

    fn require(&self, name: &str) -> Result<(), CommandError> {
        match self.contexts.contains_key(name) {
            true => Ok(()),
            false => Err(CommandError::Missing { kind: "context", name: name.to_owned() }),
        }
    }
}

/// Returns the path of the file; none without a home.
fn path() -> Option<PathBuf> {
    let named =
        |variable: &str| std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let configuration = || named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")));
    named(FILE).or_else(|| Some(configuration()?.join("reveille").join("contexts.toml")))
}

/// Writes a file beside the old one, readable by its owner only, and puts it in the old one's place.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Carries a command out.
///
/// # Errors
/// A context that is not kept, or a file that cannot be used.
pub(crate) fn run(command: &ContextCommand) -> Result<ExitReason, CommandError> {
    let mut kept = ContextFile::read()?;
    match command {
        ContextCommand::Add(flags) => {
            kept.contexts.insert(flags.name.clone(), flags.context()?);
            kept.current.get_or_insert_with(|| flags.name.clone());
            let path = kept.write()?;
            print(&format!("context {} kept in {}\n", flags.name, path.display()))?;
        }
        ContextCommand::Use { name } => {
            kept.require(name)?;
            kept.current = Some(name.clone());
            kept.write()?;
            print(&format!("context {name} is the current one\n"))?;
        }
        ContextCommand::Remove { name } => {
            kept.require(name)?;
            kept.contexts.remove(name);
            kept.current = kept.current.filter(|current| current != name);
            kept.write()?;
            print(&format!("context {name} forgotten\n"))?;
        }
        ContextCommand::List(output) => {
            let names = kept.contexts.keys().cloned().collect();
            show(output, &kept.document(), names, |_| kept.table())?;
        }
    }
    Ok(ExitReason::Done)
}

impl AddFlags {
    fn context(&self) -> Result<GatewayContext, CommandError> {
        let is_address = reqwest::Url::parse(&self.url).is_ok_and(|url| url.host().is_some());
        if !is_address {
            let next = "an address is such as https://reveille.example:7700";
            return Err(CommandError::Usage { what: format!("'{}' is no address", self.url), next });
        }
        let token = match self.token_stdin {
            true => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text)?;
                Some(text.trim().to_owned())
            }
            false => None,
        };
        // A relative path would mean another file in another directory.
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        Ok(GatewayContext {
            url: Some(self.url.clone()),
            ca_file: absolute(&self.ca_file)?,
            token,
            token_file: absolute(&self.token_file)?,
            tenant: self.tenant.clone(),
        })
    }
}
