//! Guard of large sessions: their requests have to name the number of their nodes, so that a forgotten limit does not
//! switch a whole machine.

use std::collections::BTreeSet;

use thiserror::Error;

use super::Session;

/// Sizes beyond which a session needs a confirmation. By default none does, as in BOS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizeGuard {
    /// Most nodes of a session without confirmation; `None`: any number.
    pub most_nodes: Option<u32>,
    /// Most percent of all components in a session without confirmation; `None`: all.
    pub most_percent: Option<u32>,
    /// Roles, or roles and sub-roles such as `Management_Worker`, whose nodes need a confirmation, spelled as in the inventory.
    pub roles: BTreeSet<String>,
}

/// Size of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSize {
    /// Members that are components.
    pub nodes: usize,
    /// Components of the machine.
    pub machine: usize,
    /// Guarded roles of members.
    pub roles: BTreeSet<String>,
}

/// Refusal of a session whose size is not confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnconfirmedSize {
    /// The session takes more nodes than a session may without confirmation.
    #[error("it takes {} and more than {most} need a confirmation: confirm {nodes}", count(*.nodes))]
    Nodes {
        /// Nodes of the session.
        nodes: usize,
        /// Most nodes of a session without confirmation.
        most: u32,
    },
    /// The session takes a larger part of the machine than a session may without confirmation. The text is silent about the
    /// size of the machine, which a tenant may not know.
    #[error(
        "it takes {} and more than {most} percent of the machine need a confirmation: confirm {nodes}",
        count(*.nodes)
    )]
    Percent {
        /// Nodes of the session.
        nodes: usize,
        /// Most percent of a session without confirmation.
        most: u32,
    },
    /// The session takes nodes of a guarded role.
    #[error("it takes {} and some have the role '{role}', which needs a confirmation: confirm {nodes}", count(*.nodes))]
    Role {
        /// Nodes of the session.
        nodes: usize,
        /// First guarded role.
        role: String,
    },
    /// The session takes another number of nodes than was confirmed.
    #[error("it takes {} and {confirmed} are confirmed", count(*.nodes))]
    Mismatch {
        /// Nodes of the session.
        nodes: usize,
        /// Confirmed number of nodes.
        confirmed: u32,
    },
}

fn count(nodes: usize) -> String {
    format!("{nodes} {},", if nodes == 1 { "node" } else { "nodes" })
}

impl SizeGuard {
    /// Returns whether the size of a session matters. Without a guard the count of a retry does not.
    pub fn concerns(&self, session: &Session) -> bool {
        *self != Self::default() || (session.confirmed_nodes.is_some() && session.retry_of.is_none())
    }

    /// Checks the request for a session. A confirmation has to name the exact number of nodes, but that of a retry, which
    /// counts the failed ones: some may be gone.
    ///
    /// # Errors
    /// The size needs a confirmation, or is not the confirmed one.
    pub fn admit(&self, session: &Session, size: &SessionSize) -> Result<(), UnconfirmedSize> {
        match session.confirmed_nodes {
            Some(confirmed) if confirmed as usize != size.nodes && session.retry_of.is_none() => {
                Err(UnconfirmedSize::Mismatch { nodes: size.nodes, confirmed })
            }
            Some(_) | None => self.admit_late(session, size),
        }
    }

    /// Checks a session that is set up. Nodes that have left it since its request change nothing. A plan to which it is
    /// bound has shown its nodes, and so confirms them.
    ///
    /// # Errors
    /// The size needs a confirmation, or is more than the confirmed one.
    pub fn admit_late(&self, session: &Session, size: &SessionSize) -> Result<(), UnconfirmedSize> {
        match (session.confirmed_nodes, self.objection(size)) {
            (Some(confirmed), _) if size.nodes > confirmed as usize => {
                Err(UnconfirmedSize::Mismatch { nodes: size.nodes, confirmed })
            }
            (None, Some(objection)) if session.plan.is_none() => Err(objection),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Returns the first reason why a session of that size needs a confirmation.
    pub fn objection(&self, size: &SessionSize) -> Option<UnconfirmedSize> {
        let &SessionSize { nodes, machine, .. } = size;
        let too_many = self.most_nodes.filter(|&most| nodes > most as usize);
        let too_large = self.most_percent.filter(|&most| nodes * 100 > machine * most as usize);
        let role = size.roles.intersection(&self.roles).next();
        let by_count = too_many.map(|most| UnconfirmedSize::Nodes { nodes, most });
        let by_share = too_large.map(|most| UnconfirmedSize::Percent { nodes, most });
        let by_role = role.map(|role| UnconfirmedSize::Role { nodes, role: role.clone() });
        by_count.or(by_share).or(by_role)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::boot::session::{RetriedSession, tests::session};

    fn roles(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn told(checked: Result<(), UnconfirmedSize>) -> String {
        checked.map_or_else(|refusal| refusal.to_string(), |()| "taken".to_owned())
    }

    #[test]
    fn sizes_beyond_a_bound_need_their_exact_number() {
        let guard =
            SizeGuard { most_nodes: Some(100), most_percent: Some(50), roles: roles(&["Management"]) };
        let mut rows = String::new();
        for (nodes, machine, of_roles, confirmed_nodes) in [
            (100, 200, roles(&["Compute"]), None),
            (101, 1000, roles(&[]), None),
            (101, 1000, roles(&[]), Some(100)),
            (101, 1000, roles(&[]), Some(102)),
            (101, 1000, roles(&[]), Some(101)),
            (51, 100, roles(&[]), None),
            (50, 100, roles(&[]), None),
            (1, 1000, roles(&["Compute", "Management"]), None),
            (1, 1000, roles(&["Management"]), Some(1)),
            (0, 0, roles(&[]), None),
        ] {
            let size = SessionSize { nodes, machine, roles: of_roles };
            let session = Session { confirmed_nodes, ..session("s") };
            let at_request = told(guard.admit(&session, &size));
            let at_setup = told(guard.admit_late(&session, &size));
            rows += &format!("{nodes} of {machine}, {confirmed_nodes:?}: {at_request}\n");
            if at_setup != at_request {
                rows += &format!("    at the setup: {at_setup}\n");
            }
        }
        expect![[r#"
            100 of 200, None: taken
            101 of 1000, None: it takes 101 nodes, and more than 100 need a confirmation: confirm 101
            101 of 1000, Some(100): it takes 101 nodes, and 100 are confirmed
            101 of 1000, Some(102): it takes 101 nodes, and 102 are confirmed
                at the setup: taken
            101 of 1000, Some(101): taken
            51 of 100, None: it takes 51 nodes, and more than 50 percent of the machine need a confirmation: confirm 51
            50 of 100, None: taken
            1 of 1000, None: it takes 1 node, and some have the role 'Management', which needs a confirmation: confirm 1
            1 of 1000, Some(1): taken
            0 of 0, None: taken
        "#]].assert_eq(&rows);
    }

    #[test]
    fn plans_confirm_their_nodes_and_retries_count_theirs() {
        let guard = SizeGuard { most_nodes: Some(2), ..SizeGuard::default() };
        let size = SessionSize { nodes: 3, machine: 9, ..SessionSize::default() };
        let plan = Some(format!("p1-3{}", "-000000000000".repeat(5)).parse().expect("a hash"));
        let retry_of = Some(RetriedSession { name: "r".to_owned(), id: "r-id".to_owned() });
        let mut rows = String::new();
        for (what, made) in [
            ("plan", Session { plan, ..session("s") }),
            ("plan and another number", Session { plan, confirmed_nodes: Some(2), ..session("s") }),
            ("retry", Session { retry_of: retry_of.clone(), confirmed_nodes: Some(4), ..session("s") }),
            ("retry without a count", Session { retry_of, ..session("s") }),
        ] {
            rows += &format!("{what}: {}\n", told(guard.admit(&made, &size)));
        }
        expect![[r#"
            plan: taken
            plan and another number: it takes 3 nodes, and 2 are confirmed
            retry: taken
            retry without a count: it takes 3 nodes, and more than 2 need a confirmation: confirm 3
        "#]]
        .assert_eq(&rows);
    }

    #[test]
    fn without_bounds_only_a_number_is_checked() {
        let size = SessionSize { nodes: 5, machine: 5, roles: roles(&["Management"]) };
        let free = session("s");
        let numbered = Session { confirmed_nodes: Some(4), ..session("s") };
        let guard = SizeGuard::default();
        assert_eq!([guard.concerns(&free), guard.concerns(&numbered)], [false, true]);
        assert_eq!(guard.admit(&free, &size), Ok(()));
        let mismatch = Err(UnconfirmedSize::Mismatch { nodes: 5, confirmed: 4 });
        assert_eq!(guard.admit(&numbered, &size), mismatch);
    }
}
