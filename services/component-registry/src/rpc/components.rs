//! Reads, watches and direct writes of components.

use std::sync::Arc;

use chassis::{
    Fault,
    mesh::call_class::is_control,
    process::clock,
    store::{
        ledger::{Draft, Responses},
        resource::Resource,
    },
};
use domain::{
    boot::component::{Component, ComponentPatch, filter::ComponentFilter, write},
    core::{event::Actor, id::Tenant},
};
use proto::{
    Encoded,
    component::{
        DeleteComponentRequest, DeleteComponentResponse, GetComponentRequest, GetComponentResponse,
        ListComponentsRequest, ListComponentsResponse, PatchComponentsRequest, PatchComponentsResponse,
        PatchEach, PatchMany, PutComponentsRequest, PutComponentsResponse, WatchComponentsRequest,
        WatchComponentsResponse, component_service_server::ComponentService,
        patch_components_request::Selection,
    },
};
use tokio::time::Instant;
use tonic::{Request, Response, Status, async_trait};

use super::{
    list::selection,
    repeats::RepeatedReports,
    reports::SESSION_MANAGER,
    scope::VisibleScope,
    written::{ComponentWrite, last_of_each, read_patch},
};
use crate::{RegistryState, convert, store::create};

/// Components in one message of a list: a hundred kilobytes and more. Each list in progress holds a few messages in
/// memory.
const PAGE: usize = 100;

#[async_trait]
impl ComponentService for RegistryState {
    type ListComponentsStream = Responses<ListComponentsResponse>;

    async fn list_components(
        &self,
        request: Request<ListComponentsRequest>,
    ) -> Result<Response<Self::ListComponentsStream>, Status> {
        self.components.fresh().await?;
        let revision = self.components.view().revision();
        let list = move |found: &[Arc<Component>]| ListComponentsResponse {
            components: found.iter().map(|component| convert::to_wire(component)).collect(),
            revision,
        };
        Ok(match selection(request.into_inner()).map_err(Fault::Invalid)? {
            Some(selection) => self.components.serve_list(selection, PAGE, list),
            None => self.components.respond(std::iter::empty()),
        })
    }

    async fn get_component(
        &self,
        request: Request<GetComponentRequest>,
    ) -> Result<Response<GetComponentResponse>, Status> {
        let GetComponentRequest { id, scope } = request.into_inner();
        let visible = VisibleScope::from(scope).has(&id);
        self.components.fresh().await?;
        let component = self.components.view().get(&id).filter(|_| visible).ok_or_else(|| absent(&id))?;
        Ok(Response::new(GetComponentResponse { component: Some(convert::to_wire(&component)) }))
    }

    type WatchComponentsStream = Responses<Encoded<WatchComponentsResponse>>;

    async fn watch_components(
        &self,
        request: Request<WatchComponentsRequest>,
    ) -> Result<Response<Self::WatchComponentsStream>, Status> {
        self.components.serve_watch(request).await
    }

    async fn put_components(
        &self,
        request: Request<PutComponentsRequest>,
    ) -> Result<Response<PutComponentsResponse>, Status> {
        let PutComponentsRequest { components, scope, validate_only } = request.into_inner();
        let writes = self.read_writes(components)?;
        VisibleScope::from(scope).check(writes.iter().map(|write| &write.id)).map_err(Fault::Invalid)?;
        let tokens = self.tokens_of(writes.iter().map(|write| &write.patch).collect()).await?;
        if validate_only {
            self.components.fresh().await?;
            let view = self.components.view();
            let now = clock::now();
            let judged = last_of_each(writes).into_iter().map(|write| {
                let previous = view.get(write.id.as_str());
                convert::to_wire(&write.put(previous.as_deref(), &tokens, now))
            });
            return Ok(Response::new(PutComponentsResponse { components: judged.collect() }));
        }
        let put = move |draft: &mut Draft<'_, Component>| {
            tokens.check(draft)?;
            let now = clock::now();
            let stored = last_of_each(writes).into_iter().map(|write| {
                let previous = draft.get(write.id.as_str());
                let record = write.put(previous.as_deref(), &tokens, now);
                let answer = convert::to_wire(&record);
                match previous {
                    Some(_) => draft.put(record),
                    None => create(draft, record),
                }
                answer
            });
            Ok(stored.collect())
        };
        let (components, _) = self.components.write_by(Actor::Client, put).await?;
        Ok(Response::new(PutComponentsResponse { components }))
    }

    async fn patch_components(
        &self,
        request: Request<PatchComponentsRequest>,
    ) -> Result<Response<PatchComponentsResponse>, Status> {
        // The session manager is the only part that patches: nodes that left the tenant of their session.
        let author = if is_control(request.metadata()) { SESSION_MANAGER } else { Actor::Client };
        let PatchComponentsRequest { selection, skip_bad_ids, guard_actual_state, scope } =
            request.into_inner();
        let patches = match selection {
            Some(Selection::Each(PatchEach { patches })) => {
                RequestPatches::Each(last_of_each(self.read_writes(patches)?))
            }
            Some(Selection::Many(many)) => self.read_many(many)?,
            None => return Err(Fault::Invalid(convert::missing("selection")).into()),
        };
        let tokens = self.tokens_of(patches.all()).await?;
        let rules = PatchRules { skip_bad_ids, guard_actual_state, scope: scope.into() };
        if let RequestPatches::Each(reports) = &patches {
            match self.repeats(reports, &rules.scope, &tokens) {
                Some(RepeatedReports::Known(components)) => {
                    return Ok(Response::new(PatchComponentsResponse { components }));
                }
                Some(RepeatedReports::Old) => self.renewals.turn().await,
                None => {}
            }
        }
        let (components, _) =
            self.components.write_by(author, move |draft| rules.apply(draft, patches, &tokens)).await?;
        Ok(Response::new(PatchComponentsResponse { components }))
    }

    async fn delete_component(
        &self,
        request: Request<DeleteComponentRequest>,
    ) -> Result<Response<DeleteComponentResponse>, Status> {
        let DeleteComponentRequest { id, scope } = request.into_inner();
        let visible = VisibleScope::from(scope).has(&id);
        let delete = move |draft: &mut Draft<'_, Component>| {
            // An unreadable record can be deleted; discovery then creates the component again.
            if !visible || !draft.has_row(&id) {
                return Err(absent(&id));
            }
            draft.delete(&id);
            Ok(())
        };
        self.components.write_by(Actor::Client, delete).await?;
        Ok(Response::new(DeleteComponentResponse {}))
    }
}

/// Patches and their target components.
enum RequestPatches {
    /// Patches of single components, each for its own id.
    Each(Vec<ComponentWrite>),
    /// Patch of the components with these ids.
    Ids(Box<ComponentPatch>, Vec<String>),
    /// Patch of the components of the session in the filter.
    Session(Box<ComponentPatch>, ComponentFilter),
}

impl RequestPatches {
    fn all(&self) -> Vec<&ComponentPatch> {
        match self {
            Self::Each(writes) => writes.iter().map(|write| &write.patch).collect(),
            Self::Ids(patch, _) | Self::Session(patch, _) => vec![patch],
        }
    }

    /// Returns every target id with its patch. Ids may be foreign to the caller.
    fn targets(self, draft: &Draft<'_, Component>, scope: &VisibleScope) -> Vec<(String, ComponentPatch)> {
        match self {
            Self::Each(writes) => {
                writes.into_iter().map(|write| (write.id.as_str().to_owned(), write.patch)).collect()
            }
            Self::Ids(patch, ids) => with_patch(ids, &patch),
            Self::Session(patch, filter) => {
                let is_member = |component: &Component| filter.matches(component);
                let members = match scope {
                    VisibleScope::Everything => draft.select_among(&filter.conditions(), is_member),
                    VisibleScope::Only(ids) => {
                        let visible = ids.iter().filter_map(|id| draft.get(id));
                        visible.filter(|component| is_member(component)).collect()
                    }
                };
                with_patch(members.iter().map(|component| component.key().to_owned()).collect(), &patch)
            }
        }
    }
}

fn with_patch(ids: Vec<String>, patch: &ComponentPatch) -> Vec<(String, ComponentPatch)> {
    ids.into_iter().map(|id| (id, patch.clone())).collect()
}

/// Rules of a patch request and its caller.
struct PatchRules {
    skip_bad_ids: bool,
    guard_actual_state: bool,
    scope: VisibleScope,
}

impl PatchRules {
    /// Applies the patches and returns the stored records.
    fn apply(
        &self,
        draft: &mut Draft<'_, Component>,
        patches: RequestPatches,
        tokens: &convert::RequestTokens,
    ) -> Result<Vec<proto::component::Component>, Fault> {
        tokens.check(draft)?;
        let now = clock::now();
        let mut stored = Vec::new();
        for (id, patch) in patches.targets(draft, &self.scope) {
            let Some(component) = draft.get(&id).filter(|_| self.scope.has(&id)) else {
                if self.skip_bad_ids {
                    continue;
                }
                return Err(absent(&id));
            };
            if self.guard_actual_state && patch.actual_state.is_some() {
                write::guard_actual_state(&component).map_err(|locked| Fault::Locked {
                    kind: Component::KIND.into(),
                    name: id,
                    reason: locked.to_string(),
                })?;
            }
            let merged = write::patch(&component, patch, |token| tokens.get(token), now);
            stored.push(convert::to_wire(&merged));
            draft.put(merged);
        }
        Ok(stored)
    }
}

impl RegistryState {
    fn read_many(&self, many: PatchMany) -> Result<RequestPatches, Fault> {
        let PatchMany { patch, mut ids, session, session_tenant } = many;
        let patch = Box::new(read_patch(patch.unwrap_or_default(), &mut self.interner.lock())?);
        if session.is_empty() {
            ids.sort_unstable();
            ids.dedup();
            return Ok(RequestPatches::Ids(patch, ids));
        }
        domain::core::id::check_name("filters.session", &session)?;
        let session_tenant = session_tenant.as_deref().map(Tenant::parse).transpose()?;
        let filter = ComponentFilter { session: Some(session), session_tenant, ..ComponentFilter::default() };
        Ok(RequestPatches::Session(patch, filter))
    }

    /// Looks up the tokens that patches name, before the write: tokens never change.
    async fn tokens_of(&self, patches: Vec<&ComponentPatch>) -> Result<convert::RequestTokens, Fault> {
        let mentioned =
            || patches.iter().filter_map(|patch| patch.actual_state.as_ref()?.bss_token.as_deref());
        if mentioned().next().is_some() {
            self.follow_loss().await?;
        }
        // Another replica may have stored a token just now.
        if mentioned().any(|token| self.tokens.view().get(token).is_none()) {
            self.tokens.fresh().await?;
        }
        Ok(self.known_tokens(mentioned()))
    }

    /// Ensures that the tokens in memory belong to the incarnation of the components in memory. Each kind notices a loss
    /// of commits by itself when it begins a transaction, the tokens perhaps much later than the components, and
    /// meanwhile tokens of the lost history are shown.
    pub(super) async fn follow_loss(&self) -> Result<(), Fault> {
        let Some(since_loss) = self.components.view().since_loss() else { return Ok(()) };
        if self.tokens_checked.lock().is_some_and(|at| at.elapsed() < since_loss) {
            return Ok(());
        }
        let checked = Instant::now();
        self.tokens.write(|_| Ok(())).await?;
        *self.tokens_checked.lock() = Some(checked);
        Ok(())
    }

    /// Returns the stored ones of these tokens.
    pub(super) fn known_tokens<'a>(&self, tokens: impl Iterator<Item = &'a str>) -> convert::RequestTokens {
        let view = self.tokens.view();
        let known: Vec<_> = tokens.filter_map(|token| view.get(token)).collect();
        convert::RequestTokens::new(known.iter().map(|token| &**token))
    }
}

fn absent(id: &str) -> Fault {
    Fault::not_found(Component::KIND, id)
}
