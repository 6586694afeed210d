//! The state that handlers of this face share, and requests about objects.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use chassis::Context;
use http::HeaderMap;
use proto::host::{Host, HostDocument, HostSecret};
use tokio_util::sync::CancellationToken;

use super::{
    failure::ApiFailure,
    kinds::{KINDS, ObjectSource, ResourceKind},
    records::{EventReader, RecordClient},
    request::{parameters::ApiParameters, path::ObjectPath},
    select::{FieldSelector, LabelSelector},
    store::{CachedRecord, RecordCache, VersionBase, follow},
};
use crate::{identity::RequestCaller, mesh::MeshHandle};

/// Records, copies of them, and events. Clones share them.
#[derive(Clone)]
pub(crate) struct KubernetesFace {
    pub records: RecordClient,
    pub events: EventReader,
    /// Copies by the plural of their kind.
    caches: Arc<BTreeMap<&'static str, Arc<RecordCache>>>,
    pub shutdown: CancellationToken,
}

/// Request about objects.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub path: ObjectPath,
    pub parameters: ApiParameters,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Caller; `None`: callers are not asked for credentials.
    pub caller: Option<RequestCaller>,
}

/// Objects that a list or a watch is about.
#[derive(Debug, Clone)]
pub(crate) struct ObjectSelection {
    labels: LabelSelector,
    pub fields: FieldSelector,
}

impl KubernetesFace {
    /// Creates the face, and begins to copy the records behind it.
    ///
    /// # Errors
    /// When the address of the component registry cannot be read.
    pub(crate) fn start(context: &Context, mesh: MeshHandle) -> anyhow::Result<Self> {
        let caches: BTreeMap<_, _> =
            KINDS.iter().map(|kind| (kind.plural, Arc::new(RecordCache::default()))).collect();
        let channel = context.channel(&context.settings.component_registry.url)?;
        let of = |is_kept: fn(&ResourceKind) -> bool| {
            let kinds = KINDS.iter().filter(|kind| is_kept(kind));
            kinds.map(|kind| (kind, Arc::clone(&caches[kind.plural]))).collect::<Vec<_>>()
        };
        let hosts = follow::<Host>(channel.clone(), of(|kind| kind.source == ObjectSource::Hosts));
        let secrets = follow::<HostSecret>(channel.clone(), of(|kind| kind.source == ObjectSource::Secrets));
        let documents =
            follow::<HostDocument>(channel, of(|kind| matches!(kind.source, ObjectSource::Documents(_))));
        context.tasks.spawn_until_shutdown("kubernetes face", async {
            tokio::join!(hosts, secrets, documents);
            Ok(())
        });
        Ok(Self {
            events: EventReader::new(mesh.component_events.clone(), Arc::clone(&caches["baremetalhosts"])),
            records: RecordClient::new(mesh),
            caches: Arc::new(caches),
            shutdown: context.tasks.shutdown(),
        })
    }

    /// Returns the copy of a kind. That of a kind without records stays empty.
    pub(crate) fn cache(&self, kind: &ResourceKind) -> &Arc<RecordCache> {
        &self.caches[kind.plural]
    }

    /// Returns the base of versions of a kind, once it is known.
    ///
    /// # Errors
    /// When the registry has not answered yet.
    pub(crate) async fn base(&self, kind: &ResourceKind) -> Result<VersionBase, ApiFailure> {
        let cache = self.cache(kind);
        cache.reach(1).await?;
        cache.base().ok_or_else(|| ApiFailure::unavailable("the component registry has not answered yet"))
    }

    /// Waits until the copy of a kind has everything that the registry had at this call.
    ///
    /// # Errors
    /// When the registry does not answer, or the copy does not follow.
    pub(crate) async fn catch_up(&self, kind: &'static ResourceKind) -> Result<(), ApiFailure> {
        let base = self.base(kind).await?;
        let revision = self.records.newest(kind).await?;
        self.cache(kind).reach(base.version(revision)).await
    }
}

impl ObjectSelection {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(crate) fn read(request: &ApiRequest) -> Result<Self, ApiFailure> {
        let parameters = &request.parameters;
        let labels = LabelSelector::read(parameters.text("labelSelector").unwrap_or_default())?;
        let fields =
            FieldSelector::read(parameters.text("fieldSelector").unwrap_or_default(), request.path.kind)?;
        Ok(Self { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, record: &CachedRecord) -> bool {
        if let Some(name) = self.fields.wanted("metadata.name")
            && record.name() != name
        {
            return false;
        }
        self.labels.matches(|name| record.label(name))
            && (self.fields.is_empty() || self.fields.matches(&record.object()))
    }
}
