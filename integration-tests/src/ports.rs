//! Ports for parts that are started again and again on the same one.

use std::{
    fs::File,
    net::TcpListener,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// First port of the range for parts. The range ends below the system's ephemeral ports: a client that tries to reach a
/// stopped part might otherwise get the very port that it connects to, and be connected to itself.
const FIRST_PORT: u16 = 12_000;

/// Ports in one block. A process of tests takes as many blocks as it needs.
const BLOCK: u16 = 8;

/// Number of blocks.
const BLOCKS: u16 = 2_500;

/// The blocks that this process has. Each is its own as long as its file is locked, which is until it ends.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Unused ports that stay free while their part is down: neither the system nor tests in other processes take them.
///
/// # Panics
/// When too few ports are free.
#[must_use]
pub fn free_ports(count: usize) -> Vec<u16> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ports = Vec::new();
    // Processes that start at the same time begin with different blocks.
    let begin = std::process::id() % u32::from(BLOCKS);
    for index in 0..u32::from(BLOCKS) {
        let block = ((begin + index) % u32::from(BLOCKS)) as u16;
        let Some(lock) = lock(block) else { continue };
        taken.push(lock);
        let candidates = (0..BLOCK).map(|offset| FIRST_PORT + block * BLOCK + offset);
        ports.extend(candidates.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()));
        if ports.len() >= count {
            ports.truncate(count);
            return ports;
        }
    }
    panic!("fewer than {count} ports are free");
}

/// Locks a block of ports; `None` when another process has locked it.
fn lock(block: u16) -> Option<File> {
    let directory: PathBuf = std::env::temp_dir().join("reveille-test-ports");
    std::fs::create_dir_all(&directory).expect("a directory for locks");
    let file = File::create(directory.join(block.to_string())).expect("a file to lock");
    file.try_lock().ok().map(|()| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports = [free_ports(7), free_ports(20), free_ports(1)].concat();
        let distinct = ports.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!((ports.len(), distinct.len()), (28, 28));
    }
}
