//! Lists that the gateway gives page by page: those of the faces of Kubernetes and of Flight Control.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{client::parsed, connection::ConnectionFlags, error::CommandError, output::OutputFlags};

/// Records of a page.
const PAGE: &str = "500";

/// Flags of a list that the gateway gives page by page.
#[derive(Debug, Args)]
pub struct PageFlags {
    /// Only records with these labels, such as site=madrid,line!=2
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// Metadata of a listed record.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListedMeta {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) creation_timestamp: String,
    pub(crate) owner: Option<String>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
struct ListPage {
    items: Vec<Value>,
    #[serde(default)]
    metadata: PageMeta,
}

#[derive(Debug, Default, Deserialize)]
struct PageMeta {
    /// Token of the next page; empty or absent: there is none.
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// Reads a whole list: of `path`, and of the labels in the flags. Returns the array of its records, and each of them read.
///
/// # Errors
/// The gateway does not answer, refuses, or answers with something else.
pub(crate) async fn whole<T: DeserializeOwned>(
    flags: &PageFlags,
    path: &str,
    fields: Option<String>,
) -> Result<(Value, Vec<T>), CommandError> {
    let client = flags.connection.client()?;
    let labels = flags.selector.clone().map(|labels| ("labelSelector", labels));
    let fields = fields.map(|fields| ("fieldSelector", fields));
    let query: Vec<_> = labels.into_iter().chain(fields).chain([("limit", PAGE.to_owned())]).collect();
    let mut items = Vec::new();
    let mut next = None;
    loop {
        let mut query = query.clone();
        query.extend(next.map(|token| ("continue", token)));
        let page: ListPage = parsed(path, client.get_own(path, &query).await?)?;
        items.extend(page.items);
        next = page.metadata.next.filter(|token| !token.is_empty());
        if next.is_none() {
            break;
        }
    }
    let document = Value::Array(items);
    let records = parsed(path, document.clone())?;
    Ok((document, records))
}
