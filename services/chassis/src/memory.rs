//! Room for crowds that have gone.

use std::{collections::HashMap, hash::Hash};

/// Entries for which every map may have room.
const ROOM: usize = 1024;

/// Gives back the room that a map had for a crowd, when most of it has gone; otherwise it would stay as long as the map.
/// To be called whenever something was removed: what it costs is shared by those who have gone.
pub fn leave_room<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.len() < map.capacity() / 8 {
        map.shrink_to(ROOM.max(2 * map.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_a_crowd_goes_with_the_crowd() {
        let mut map: HashMap<_, _> = (0..100_000).map(|key| (key, ())).collect();
        for key in 10..100_000 {
            map.remove(&key);
            leave_room(&mut map);
        }
        assert!(map.capacity() <= 2 * ROOM, "{}", map.capacity());
        assert!((0..10).all(|key| map.contains_key(&key)));
    }
}
