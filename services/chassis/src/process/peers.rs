//! Peers of the process: systems outside the mesh that it calls, and since when they work or fail.

use std::sync::{Arc, Weak};

use domain::core::time::Timestamp;
use parking_lot::Mutex;

/// Peers in use. A peer that is dropped leaves the list. One list for the process, as for its metrics: peers are made deep within
/// drivers, which know of no list.
static PEERS: Mutex<Vec<Weak<dyn KnownPeer>>> = Mutex::new(Vec::new());

/// Peer whose state can be asked for. The crate that calls peers is above this one.
pub trait KnownPeer: Send + Sync {
    /// Returns the present state.
    fn standing(&self) -> PeerStanding;
}

/// State of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerStanding {
    /// Name, such as `HSM`.
    pub name: String,
    /// Host and port.
    pub address: String,
    /// Outcome of the last calls.
    pub state: PeerState,
}

/// Outcome of the last calls of a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PeerState {
    /// The peer was not called yet.
    #[default]
    NotCalled,
    /// Calls are answered since that time.
    Works(Timestamp),
    /// Calls of at least one operation fail.
    Fails {
        /// First failure in a row.
        since: Timestamp,
        /// Error of the last failed call.
        error: String,
    },
}

/// Adds a peer to the list, as long as it is in use.
pub fn register(peer: &Arc<impl KnownPeer + 'static>) {
    let peer: Weak<dyn KnownPeer> = Arc::downgrade(peer) as _;
    let mut peers = PEERS.lock();
    peers.retain(|known| known.strong_count() > 0);
    peers.push(peer);
}

/// Returns the peers in use, by name and address.
pub(crate) fn standings() -> Vec<PeerStanding> {
    let peers: Vec<_> = PEERS.lock().iter().filter_map(Weak::upgrade).collect();
    let mut all: Vec<_> = peers.iter().map(|peer| peer.standing()).collect();
    all.sort_by(|one, other| (&one.name, &one.address).cmp(&(&other.name, &other.address)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_peer_leaves_the_list() {
        struct Peer;
        impl KnownPeer for Peer {
            fn standing(&self) -> PeerStanding {
                let state = PeerState::NotCalled;
                PeerStanding { name: "dropped".into(), address: "site:80".into(), state }
            }
        }
        let is_listed = || standings().iter().any(|peer| peer.name == "dropped");
        let peer = Arc::new(Peer);
        register(&peer);
        assert!(is_listed());
        drop(peer);
        assert!(!is_listed());
    }
}
