//! Virtual media of a system.

use redfish::{link, members, path};
use serde_json::{Value, json};
use upstream::{Failure, FailureKind, Request};

use super::Turn;

/// Drive for images of discs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MediaDrive {
    path: String,
    /// Address of the inserted image; `None`: the drive is empty.
    pub(super) image: Option<String>,
    insert: Option<String>,
    eject: Option<String>,
}

impl MediaDrive {
    /// Reads a drive; `None`: it takes no images of discs.
    fn read(at: &str, document: &Value) -> Option<Self> {
        let kinds = document["MediaTypes"].as_array()?;
        kinds.iter().any(|kind| kind == "CD" || kind == "DVD").then(|| Self {
            path: at.to_owned(),
            image: document["Inserted"]
                .as_bool()
                .unwrap_or(false)
                .then(|| document["Image"].as_str().unwrap_or_default().to_owned()),
            insert: action(document, "InsertMedia"),
            eject: action(document, "EjectMedia"),
        })
    }

    /// Returns whether `url` is inserted. Some BMCs show only the name of the file.
    pub(super) fn holds(&self, url: &str) -> bool {
        let name = url.rsplit('/').next().unwrap_or(url);
        self.image.as_deref().is_some_and(|image| image == url || image == name)
    }

    /// Inserts an image.
    pub(super) async fn insert(&self, turn: &mut Turn<'_>, url: &str) -> Result<(), Failure> {
        let body = json!({"Image": url, "Inserted": true, "WriteProtected": true});
        turn.send(match &self.insert {
            Some(target) => Request::post("media_insert", target).json(&body),
            None => Request::patch("media_insert", &self.path).json(&body),
        })
        .await
    }

    /// Ejects the image.
    pub(super) async fn eject(&self, turn: &mut Turn<'_>) -> Result<(), Failure> {
        turn.send(match &self.eject {
            Some(target) => Request::post("media_eject", target).json(&json!({})),
            None => {
                Request::patch("media_eject", &self.path).json(&json!({"Image": null, "Inserted": false}))
            }
        })
        .await
    }
}

fn action(document: &Value, name: &str) -> Option<String> {
    document["Actions"][format!("#VirtualMedia.{name}")]["target"].as_str().and_then(path)
}

/// Returns the drives of a system: its own, or those of the managers of it.
pub(super) async fn drives(turn: &mut Turn<'_>, system: &Value) -> Result<Vec<MediaDrive>, Failure> {
    let mut found = Vec::new();
    for collection in collections(turn, system).await? {
        let listed = turn.get("media_list", &collection).await?;
        for at in members(&listed) {
            let document = turn.get("media_get", &at).await?;
            found.extend(MediaDrive::read(&at, &document));
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(found)
}

/// Returns the collections of drives that a system links.
async fn collections(turn: &mut Turn<'_>, system: &Value) -> Result<Vec<String>, Failure> {
    let own = link(&system["VirtualMedia"]);
    if own.is_some() {
        return Ok(own.into_iter().collect());
    }
    let mut found = Vec::new();
    for manager in system["Links"]["ManagedBy"].as_array().into_iter().flatten().filter_map(link) {
        let document = turn.get("manager_get", &manager).await?;
        found.extend(link(&document["VirtualMedia"]));
    }
    Ok(found)
}

/// Returns the first drive; an error names what the BMC lacks.
pub(super) async fn drive(turn: &mut Turn<'_>, system: &Value) -> Result<MediaDrive, Failure> {
    let found = drives(turn, system).await?.into_iter().next();
    found.ok_or_else(|| Failure {
        kind: FailureKind::Refused,
        status: None,
        text: "the BMC has no virtual media for images of discs".to_owned(),
    })
}
