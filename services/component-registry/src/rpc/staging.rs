//! Application of staged states: the rule of `domain::boot::session::staging`, applied to the newest records in one
//! transaction.

use std::collections::{HashMap, HashSet};

use chassis::{
    Fault,
    process::clock,
    store::ledger::{Draft, Ledger},
};
use domain::{
    boot::{
        component::{Component, SessionReference, write::KnownToken},
        session::staging::{self, Standing, Terms, Verdict},
    },
    core::time::Timestamp,
};
use proto::component::{ApplyStagedRequest, ApplyStagedResponse};

use super::reports::SESSION_MANAGER;
use crate::{RegistryState, convert, store::BootTokens};

impl RegistryState {
    /// Applies staged states, or returns the references of unknown sessions.
    ///
    /// # Errors
    /// The request cannot be read, or the write fails.
    pub(super) async fn apply(&self, request: ApplyStagedRequest) -> Result<ApplyStagedResponse, Fault> {
        let ApplyStagedRequest { ids, tenant, sessions } = request;
        // Another replica may have changed the options just now.
        self.options.fresh().await?;
        let terms = Terms {
            tenant: domain::core::id::Tenant::parse(&tenant)?,
            clear_stage: self.options_in_force().clear_stage,
            compatibility: self.compatibility,
        };
        let sessions = convert::staged_sessions(sessions)?;
        let application = StagedApplication { terms, sessions, tokens: self.tokens.clone() };
        let apply = move |draft: &mut Draft<'_, Component>| Ok(application.run(draft, ids));
        let (answer, revision) = self.components.write_by(SESSION_MANAGER, apply).await?;
        Ok(ApplyStagedResponse { revision, ..answer })
    }
}

/// Rules and data for applying staged states.
struct StagedApplication {
    terms: Terms,
    sessions: HashMap<SessionReference, Standing>,
    tokens: Ledger<BootTokens>,
}

impl StagedApplication {
    fn run(&self, draft: &mut Draft<'_, Component>, ids: Vec<String>) -> ApplyStagedResponse {
        let mut answer = ApplyStagedResponse { unknown: self.unknown(draft, &ids), ..Default::default() };
        if !answer.unknown.is_empty() {
            return answer;
        }
        let now = clock::now();
        for id in ids {
            let verdicts = match self.apply(draft, &id, now) {
                Verdict::Succeeded => &mut answer.succeeded_ids,
                Verdict::Failed => &mut answer.failed_ids,
                Verdict::Ignored => &mut answer.ignored_ids,
            };
            verdicts.push(id);
        }
        answer
    }

    /// Returns the sessions that components name and the request does not include.
    fn unknown(
        &self,
        draft: &Draft<'_, Component>,
        ids: &[String],
    ) -> Vec<proto::component::SessionReference> {
        let named = ids.iter().filter_map(|id| draft.get(id)?.staged_by());
        let unknown: HashSet<_> = named.filter(|named| !self.sessions.contains_key(named)).collect();
        unknown.into_iter().map(convert::reference_to_wire).collect()
    }

    fn apply(&self, draft: &mut Draft<'_, Component>, id: &str, now: Timestamp) -> Verdict {
        let Some(component) = draft.get(id) else { return Verdict::Ignored };
        let standing = component.staged_by().and_then(|reference| self.sessions.get(&reference));
        let Some(standing) = standing else { return Verdict::Ignored };
        let tokens = |token: &str| {
            let known = self.tokens.view().get(token)?;
            Some(KnownToken { boot_artifacts: known.boot_artifacts.clone(), number: known.revision })
        };
        let (verdict, record) = staging::apply(&component, standing, &self.terms, tokens, now);
        record.into_iter().for_each(|record| draft.put(record));
        verdict
    }
}
