//! Giving memory back to the system.

use std::{collections::HashMap, convert::Infallible, hash::Hash, thread, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

/// How often memory is given back: a thread that does nothing costs less than a hundred microseconds.
const PERIOD: Duration = Duration::from_secs(2);

/// Has the allocator give back what has been free for a second. It does so when it is called, and a part at rest hardly
/// calls it: what a start, a boot or a crowd of lists had needed would stay for hours. It also does so when a thread
/// ends, which needs no call that the compiler cannot check.
pub(crate) async fn give_back() -> anyhow::Result<Infallible> {
    let mut period = interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        period.tick().await;
        if let Err(error) = thread::Builder::new().name("memory".into()).spawn(|| {}) {
            tracing::debug!(%error, "no memory is given back now");
        }
    }
}

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
