//! The request for a session, and the record made from it (BOS reference 2.9.1).

use super::{NodeRolloutPolicy, Progress, Session, SessionRollout};
use crate::{
    boot::{
        bos::{compatibility::Compatibility, options::Options},
        session::{
            limit::{Limit, names_nid},
            plan::PlanHash,
        },
        template::Operation,
    },
    core::{
        bos_time,
        id::{Tenant, check_name},
        invalid::Invalid,
        time::Timestamp,
    },
};

/// Refusal in the words of BOS where a limit is required.
const LIMIT_REQUIRED: &str = "session_limit_required option is set, but this session has no limit specified";

/// Request for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Name; empty: the id of the session.
    pub name: String,
    /// Tenant that owns the session.
    pub tenant: Tenant,
    /// Operation of the session.
    pub operation: Operation,
    /// Name of the template.
    pub template_name: String,
    /// Selection from the template's nodes; empty: all.
    pub limit: String,
    /// Whether the wish is only staged in the members until the session is applied to them.
    pub stage: bool,
    /// Whether nodes that the inventory disables are members too.
    pub include_disabled: bool,
    /// Session whose failed components this one retries, if there is one.
    pub retry_of: Option<RetriedSession>,
    /// Hash of the plan to which the session is bound, if there is one.
    pub plan: Option<PlanHash>,
    /// Confirmed number of nodes, if there is one.
    pub confirmed_nodes: Option<u32>,
    /// Policy of the rollout in batches; `None`: all members begin at once.
    pub rollout: Option<NodeRolloutPolicy>,
}

/// Session that another one retries. Names may be used again, so the id decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriedSession {
    /// Name of the session.
    pub name: String,
    /// Unique id of the session.
    pub id: String,
}

/// Returns the pending session made from `wish`, under the unique `id`. The caller checks that tenant and template
/// exist and that the name is free.
///
/// # Errors
/// Names the field that breaks a limit or a requirement of the options.
pub fn create(
    wish: NewSession,
    options: &Options,
    compatibility: Compatibility,
    id: String,
    now: Timestamp,
) -> Result<Session, Invalid> {
    let name = if wish.name.is_empty() { id.clone() } else { wish.name };
    check_name("name", &name)?;
    check_name("template_name", &wish.template_name)?;
    check_limit(&wish.limit, options, compatibility)?;
    if wish.stage && wish.rollout.is_some() {
        return Err(Invalid::new("rollout", "a session that only stages begins nothing, and has no batches"));
    }
    Ok(Session {
        name,
        tenant: wish.tenant,
        operation: wish.operation,
        template_name: wish.template_name,
        limit: wish.limit,
        stage: wish.stage,
        include_disabled: wish.include_disabled,
        components: Vec::new(),
        progress: Progress::Pending,
        start_time: bos_time::text(now),
        end_time: None,
        error: None,
        id,
        revision: 0,
        assigned_revision: 0,
        waiting_for: String::new(),
        trouble_begin: None,
        created_at: now,
        result: None,
        cancellation: None,
        pause: None,
        retry_of: wish.retry_of,
        plan: wish.plan,
        confirmed_nodes: wish.confirmed_nodes,
        rollout: wish.rollout.map(SessionRollout::new),
        undisturbed_since: None,
        trace: "".into(),
    })
}

/// Checks the limit of a session. Strictly, a limit that the options forbid is refused in the words of BOS, which names
/// no field.
fn check_limit(text: &str, options: &Options, compatibility: Compatibility) -> Result<(), Invalid> {
    let limit = Limit::parse(text)?;
    if options.session_limit_required && limit.is_empty() {
        if compatibility.strict_bos {
            return Err(Invalid::new("", LIMIT_REQUIRED));
        }
        return Err(Invalid::new("limit", "option session_limit_required is set, but no limit was given"));
    }
    if options.reject_nids && names_nid(text) {
        if compatibility.strict_bos {
            let reason = format!("reject_nids: session limit appears to contain NIDs: {text}");
            return Err(Invalid::new("", reason));
        }
        let reason = format!("reject_nids: '{text}' has an item that looks like a numeric node id");
        return Err(Invalid::new("limit", reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{NOW, session},
        *,
    };

    fn wish() -> NewSession {
        NewSession {
            name: "s".to_owned(),
            tenant: Tenant::none(),
            operation: Operation::Boot,
            template_name: "t".to_owned(),
            limit: String::new(),
            stage: false,
            include_disabled: false,
            retry_of: None,
            plan: None,
            confirmed_nodes: None,
            rollout: None,
        }
    }

    fn limited(limit: &str) -> NewSession {
        NewSession { limit: limit.to_owned(), ..wish() }
    }

    #[test]
    fn a_wish_becomes_a_pending_session() {
        let options = Options::default();
        let create = |wish, id: &str| create(wish, &options, Compatibility::default(), id.to_owned(), NOW);
        assert_eq!(create(wish(), "s-id"), Ok(session("s")));
        let unnamed = NewSession { name: String::new(), ..wish() };
        let named = create(unnamed, "5f2c").expect("valid");
        assert_eq!((named.name, named.id), ("5f2c".to_owned(), "5f2c".to_owned()));
    }

    #[test]
    fn wishes_are_checked() {
        let lax = Options::default();
        let strict = Options { session_limit_required: true, reject_nids: true, ..Options::default() };
        for (wish, options, expected) in [
            (
                NewSession { name: "-s".to_owned(), ..wish() },
                &lax,
                "name: '-s' must begin and end with a letter or a digit",
            ),
            (
                NewSession { template_name: String::new(), ..wish() },
                &lax,
                "template_name: has 0 characters but needs at least 1",
            ),
            (limited("a,"), &lax, "limit: item 2 is empty"),
            (limited("nid1"), &lax, ""),
            (wish(), &strict, "limit: option session_limit_required is set, but no limit was given"),
            (limited("*"), &strict, ""),
            (limited("all"), &strict, ""),
            (
                limited("g,!nid1"),
                &strict,
                "limit: reject_nids: 'g,!nid1' has an item that looks like a numeric node id",
            ),
        ] {
            let refusal = create(wish, options, Compatibility::default(), "id".to_owned(), NOW).err();
            assert_eq!(refusal.map(|e| e.to_string()).unwrap_or_default(), expected);
        }
    }

    #[test]
    fn strict_refusals_have_the_words_of_bos() {
        let options = Options { session_limit_required: true, reject_nids: true, ..Options::default() };
        let strict = Compatibility { strict_bos: true };
        for (wish, expected) in [
            (wish(), "session_limit_required option is set, but this session has no limit specified"),
            (limited("g,!nid1"), "reject_nids: session limit appears to contain NIDs: g,!nid1"),
        ] {
            let refusal = create(wish, &options, strict, "id".to_owned(), NOW).err();
            assert_eq!(refusal, Some(Invalid::new("", expected)));
        }
    }
}
