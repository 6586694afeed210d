//! Room for crowds that have gone.

use std::{collections::HashMap, hash::Hash};

/// Entries for which every map may have room.
const ROOM: usize = 1024;

/// Shrinks a map that was large, once most of its entries are gone; otherwise its memory would stay as long as the map.
/// Call this after each removal: the cost is shared by the removed entries.
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
