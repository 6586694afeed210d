//! Hosts as `BareMetalHost`s.

use proto::host::{Host, HostStatus};
use serde_json::Map;

use super::{
    super::{
        kinds::{self, METAL3, ResourceKind},
        object::ApiObject,
        store::{FollowedKind, VersionBase},
    },
    json::{ShownMembers, nested},
    meta, progress, spec, status,
};

/// Member of the status with the progress.
const EXTENSION: &str = "reveille";

pub(super) fn kind() -> &'static ResourceKind {
    kinds::find(METAL3, "v1alpha1", "baremetalhosts").expect("the table has hosts")
}

impl FollowedKind for Host {
    fn kind(&self) -> Option<&'static ResourceKind> {
        Some(kind())
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn shown(self, base: VersionBase) -> ApiObject {
        let namespace = self.meta.as_ref().map(|meta| meta.namespace.clone()).unwrap_or_default();
        let is_decided = self.status.as_ref().is_some_and(|status| *status != HostStatus::default());
        let extension = self.progress.and_then(progress::shown);
        let known = self.status.filter(|_| is_decided).map(|known| {
            status::shown(known, &namespace).maybe(EXTENSION, extension.map(ShownMembers::into_map))
        });
        meta::shown(kind(), self.meta, self.revision, base)
            .always("spec", spec::shown(self.spec.unwrap_or_default()))
            .maybe("status", known)
            .into_map()
    }

    fn place(key: &str) -> Option<(&'static ResourceKind, &str, &str)> {
        let (namespace, name) = key.split_once('/')?;
        Some((kind(), namespace, name))
    }
}

/// Reads facts and wishes of a host.
pub(super) fn read(object: &ApiObject) -> Host {
    let wishes = nested(object, "spec").map(spec::read).unwrap_or_default();
    Host { meta: Some(meta::read(object)), spec: Some(wishes), ..Host::default() }
}

/// Reads the knowledge about a host.
pub(super) fn read_status(object: &ApiObject) -> HostStatus {
    status::read(nested(object, "status").unwrap_or(&Map::new()))
}
