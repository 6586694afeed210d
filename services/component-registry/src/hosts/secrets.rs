//! Secrets of hosts over gRPC. Values come in and are sealed; only parts of the mesh read them.

use std::collections::{BTreeMap, BTreeSet};

use chassis::{
    Fault,
    kinds::host::{SecretRecord, key},
    mesh::call_class::is_control,
    process::clock,
    store::{
        ledger::{Draft, Responses},
        resource::Resource,
    },
};
use domain::core::invalid::Invalid;
use proto::{
    Encoded,
    host::{
        CreateHostSecretRequest, CreateHostSecretResponse, DeleteHostSecretRequest, DeleteHostSecretResponse,
        GetHostSecretRequest, GetHostSecretResponse, HostSecret, ListHostSecretsRequest,
        ListHostSecretsResponse, ReadSecretValuesRequest, ReadSecretValuesResponse, ReplaceHostSecretRequest,
        ReplaceHostSecretResponse, SecretName, WatchHostSecretsRequest, WatchHostSecretsResponse,
        host_secret_service_server::HostSecretService,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    ledgers::{self, HostLedgers, ObjectWrite},
    object::{self, DeletionRequest, ObjectRecord as _},
    records::missing,
};
use crate::store::StoredSecret;

/// Secrets in one message of a list.
const PAGE: usize = 200;

/// Most bytes of the values of a secret.
const MOST_BYTES: usize = 1 << 20;

/// Values by name.
type Values = BTreeMap<String, Vec<u8>>;

#[async_trait]
impl HostSecretService for HostLedgers {
    type ListHostSecretsStream = Responses<ListHostSecretsResponse>;

    async fn list_host_secrets(
        &self,
        request: Request<ListHostSecretsRequest>,
    ) -> Result<Response<Self::ListHostSecretsStream>, Status> {
        let ListHostSecretsRequest { filter, start_after, page_size } = request.into_inner();
        self.secrets.fresh().await?;
        let revision = self.secrets.view().revision();
        let after = start_after.map_or_else(String::new, |name| key(&name.namespace, &name.name));
        let selection = ledgers::selection(filter, after, page_size, |_: &StoredSecret| true);
        Ok(self.secrets.serve_list(selection, PAGE, move |found| ListHostSecretsResponse {
            host_secrets: found.iter().map(|secret| secret.record.message.clone()).collect(),
            revision,
        }))
    }

    async fn get_host_secret(
        &self,
        request: Request<GetHostSecretRequest>,
    ) -> Result<Response<GetHostSecretResponse>, Status> {
        let key = named(request.into_inner().name)?;
        let secret = ledgers::read(&self.secrets, &key).await?.record.message.clone();
        Ok(Response::new(GetHostSecretResponse { host_secret: Some(secret) }))
    }

    type WatchHostSecretsStream = Responses<Encoded<WatchHostSecretsResponse>>;

    async fn watch_host_secrets(
        &self,
        request: Request<WatchHostSecretsRequest>,
    ) -> Result<Response<Self::WatchHostSecretsStream>, Status> {
        match request.get_ref().filter.clone() {
            None => self.secrets.serve_watch(request).await,
            Some(filter) => {
                let wanted = move |secret: &StoredSecret| object::passes(secret, &filter);
                self.secrets.serve_watch_of(request, wanted).await
            }
        }
    }

    async fn create_host_secret(
        &self,
        request: Request<CreateHostSecretRequest>,
    ) -> Result<Response<CreateHostSecretResponse>, Status> {
        let CreateHostSecretRequest { host_secret, values, validate_only } = request.into_inner();
        let secret = host_secret.ok_or_else(|| missing("host_secret"))?;
        let secret = HostSecret { data_version: 1, ..secret };
        let secret = self.sealed(secret, values)?;
        object::check_name("metadata.namespace", &secret.meta().namespace).map_err(Fault::from)?;
        self.check_namespace(&secret.meta().namespace)?;
        let write = ObjectWrite::of(secret.key().to_owned(), validate_only);
        let create = move |current: Option<&StoredSecret>| {
            let record = object::create(current, secret, clock::now())?;
            Ok(object::settle(current, record))
        };
        let (secret, _) = ledgers::write(&self.secrets, write, create).await?;
        Ok(Response::new(CreateHostSecretResponse { host_secret: Some(secret.record.message) }))
    }

    async fn replace_host_secret(
        &self,
        request: Request<ReplaceHostSecretRequest>,
    ) -> Result<Response<ReplaceHostSecretResponse>, Status> {
        let request = request.into_inner();
        let secret = request.host_secret.clone().ok_or_else(|| missing("host_secret"))?;
        let key = SecretRecord::of(secret.clone()).key().to_owned();
        let precondition = request.precondition.clone().unwrap_or_default();
        let current = ledgers::read(&self.secrets, &key).await?;
        object::expected(&key, Some(&*current), &precondition)?;
        let wanted = self.merged(&current, secret, &request)?;
        // The values were merged with those of this revision.
        let read = current.revision();
        let write = ObjectWrite::of(key.clone(), request.validate_only);
        let replace = move |current: Option<&StoredSecret>| {
            let known = object::expected(&key, current, &precondition)?;
            if known.revision() != read {
                return Err(Fault::Conflict { kind: StoredSecret::KIND.into(), name: key });
            }
            let record = object::replace(&key, current, wanted, &precondition)?;
            Ok(object::settle(current, record))
        };
        let (secret, _) = ledgers::write(&self.secrets, write, replace).await?;
        Ok(Response::new(ReplaceHostSecretResponse { host_secret: Some(secret.record.message) }))
    }

    async fn delete_host_secret(
        &self,
        request: Request<DeleteHostSecretRequest>,
    ) -> Result<Response<DeleteHostSecretResponse>, Status> {
        let request = request.into_inner();
        let deletion = DeletionRequest::of(request.precondition.clone(), request.propagation());
        let write = ObjectWrite::of(named(request.name)?, request.validate_only);
        let (secret, gone) = self.delete_secret(write, deletion).await?;
        Ok(Response::new(DeleteHostSecretResponse { host_secret: Some(secret.record.message), gone }))
    }

    async fn read_secret_values(
        &self,
        request: Request<ReadSecretValuesRequest>,
    ) -> Result<Response<ReadSecretValuesResponse>, Status> {
        if !is_control(request.metadata()) {
            return Err(Status::permission_denied("values of secrets are for parts of the mesh alone"));
        }
        let key = named(request.into_inner().name)?;
        let secret = ledgers::read(&self.secrets, &key).await?;
        let HostSecret { data_version, r#type, .. } = secret.record.message.clone();
        let values = self.values_of(&secret)?;
        Ok(Response::new(ReadSecretValuesResponse { values, data_version, r#type }))
    }
}

impl HostLedgers {
    /// Requests the deletion of a secret; returns the secret and whether it is gone.
    pub(super) async fn delete_secret(
        &self,
        write: ObjectWrite,
        request: DeletionRequest,
    ) -> Result<(StoredSecret, bool), Fault> {
        let key = write.key.clone();
        let delete = move |current: Option<&StoredSecret>| {
            let record = object::delete(&key, current, &request, clock::now())?;
            Ok(object::settle(current, record))
        };
        ledgers::write(&self.secrets, write, delete).await
    }

    /// Encrypts the values of every secret again that another key than the first has encrypted.
    pub(super) async fn seal_again(&self) -> Result<(), Fault> {
        self.secrets.fresh().await?;
        let all = self.secrets.view().all();
        let old = all.iter().filter(|secret| !self.vault.is_current(&secret.sealed));
        let mut sealed = Vec::new();
        for secret in old {
            match self.values_of(secret) {
                Ok(values) => {
                    sealed.push((secret.revision(), self.sealed(secret.record.message.clone(), values)?))
                }
                Err(fault) => tracing::warn!(secret = secret.key(), %fault, "values cannot be decrypted"),
            }
        }
        if sealed.is_empty() {
            return Ok(());
        }
        let store = move |draft: &mut Draft<'_, StoredSecret>| {
            for (revision, secret) in sealed {
                if draft.get(secret.key()).is_some_and(|current| current.revision() == revision) {
                    draft.put(secret);
                }
            }
            Ok(())
        };
        self.secrets.write(store).await?;
        Ok(())
    }

    fn values_of(&self, secret: &StoredSecret) -> Result<Values, Fault> {
        Ok(self.vault.open_values(secret.key(), &secret.sealed)?.values)
    }

    /// Returns the secret with these values.
    fn sealed(&self, mut secret: HostSecret, values: Values) -> Result<StoredSecret, Fault> {
        let bytes: usize = values.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MOST_BYTES {
            return Err(Invalid::new("data", format!("has more than {MOST_BYTES} bytes")).into());
        }
        secret.data_keys = values.keys().cloned().collect();
        let record = SecretRecord::of(secret);
        let values = ReadSecretValuesResponse { values, ..ReadSecretValuesResponse::default() };
        let sealed = self.vault.seal(record.key(), &values)?;
        Ok(StoredSecret { record, sealed })
    }

    /// Returns the secret that a request wants in place of `current`.
    fn merged(
        &self,
        current: &StoredSecret,
        mut wanted: HostSecret,
        request: &ReplaceHostSecretRequest,
    ) -> Result<StoredSecret, Fault> {
        let before = &current.record.message;
        let is_kept = |name: &String| {
            request.keep_other_values
                && !request.removed_keys.contains(name)
                && !request.values.contains_key(name)
        };
        let known = match self.values_of(current) {
            // Values that no key opens may be replaced as a whole.
            Err(_) if !before.data_keys.iter().any(is_kept) => Values::new(),
            read => read?,
        };
        let mut values = if request.keep_other_values { known.clone() } else { Values::new() };
        let removed: BTreeSet<&String> = request.removed_keys.iter().collect();
        values.retain(|name, _| !removed.contains(name));
        values.extend(request.values.clone());
        let is_changed = values != known || wanted.r#type != before.r#type;
        if before.immutable == Some(true) && (is_changed || wanted.immutable != before.immutable) {
            return Err(Invalid::new("data", "cannot be changed: the secret is immutable").into());
        }
        wanted.data_version = before.data_version + u64::from(is_changed);
        if is_changed {
            return self.sealed(wanted, values);
        }
        wanted.data_keys.clone_from(&before.data_keys);
        Ok(StoredSecret { record: SecretRecord::of(wanted), sealed: current.sealed.clone() })
    }
}

fn named(name: Option<SecretName>) -> Result<String, Fault> {
    let name = name.ok_or_else(|| missing("name"))?;
    Ok(key(&name.namespace, &name.name))
}
