//! Flags of a session that rolls out in batches.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::follow::duration;

/// Flags that cut the nodes of a session into batches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rollout in batches")]
pub struct RolloutFlags {
    /// Size of the first batch, such as 2 or 5%
    #[arg(long, value_name = "N|P%", value_parser = share)]
    canary: Option<BatchShare>,
    /// Size of the other batches, such as 10 or 25% [default: all in one]
    #[arg(long, value_name = "N|P%", value_parser = share, conflicts_with = "by")]
    batch: Option<BatchShare>,
    /// Places that are batches, instead of a size
    #[arg(long, value_enum, value_name = "PLACE")]
    by: Option<BatchPlace>,
    /// Most nodes of open batches that may be under way at a time
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
    /// Time between the success of a batch and the next batch, such as 5m [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    soak: Option<Duration>,
    /// Share of a batch that has to succeed before the next batch begins [default: 100%]
    #[arg(long, value_name = "P%", value_parser = percent)]
    threshold: Option<u32>,
    /// Consequence if it does not [default: pause]
    #[arg(long, value_enum, value_name = "ACTION")]
    on_miss: Option<MissAction>,
}

/// Part of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchShare {
    Count(u32),
    Percent(u32),
}

/// Kind of places.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BatchPlace {
    /// Cabinets, one after the other
    Cabinet,
    /// Chassis, one after the other
    Chassis,
}

/// Consequence of a batch in which too many nodes fail.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum MissAction {
    /// Pause the session: `reveille session resume` lets the next batch begin
    Pause,
    /// Begin no further batch, and release its nodes
    Stop,
}

impl RolloutFlags {
    /// Returns the policy for the gateway, which checks it; `None`: no flag is given.
    pub(crate) fn body(&self) -> Option<Value> {
        let mut body = Map::new();
        for (name, share) in [("canary", self.canary), ("batch", self.batch)] {
            match share {
                None => continue,
                Some(BatchShare::Count(count)) => body.insert(format!("{name}_count"), json!(count)),
                Some(BatchShare::Percent(percent)) => body.insert(format!("{name}_percent"), json!(percent)),
            };
        }
        let by = self.by.map(|place| match place {
            BatchPlace::Cabinet => "cabinet",
            BatchPlace::Chassis => "chassis",
        });
        let on_miss = self.on_miss.map(|action| match action {
            MissAction::Pause => "pause",
            MissAction::Stop => "stop",
        });
        let given = [
            ("by", by.map(|by| json!(by))),
            ("max_in_flight", self.max_in_flight.map(|most| json!(most))),
            ("soak", self.soak.map(|soak| json!(soak.as_secs()))),
            ("threshold_percent", self.threshold.map(|threshold| json!(threshold))),
            ("on_miss", on_miss.map(|on_miss| json!(on_miss))),
        ];
        body.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        (!body.is_empty()).then_some(Value::Object(body))
    }
}

/// Reads a share such as `10` or `25%`.
fn share(text: &str) -> Result<BatchShare, String> {
    let number = |digits: &str| digits.parse::<u32>().map_err(|_| "a share is such as 10 or 25%".to_owned());
    match text.strip_suffix('%') {
        Some(digits) => number(digits).map(BatchShare::Percent),
        None => number(text).map(BatchShare::Count),
    }
}

/// Reads a percentage such as `95%` or `95`.
fn percent(text: &str) -> Result<u32, String> {
    text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| "a threshold is such as 95%".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCommand {
        #[command(flatten)]
        rollout: RolloutFlags,
    }

    #[test]
    fn flags_are_a_policy() {
        for (flags, expected) in [
            ("", None),
            ("--canary 2", Some(json!({"canary_count": 2}))),
            ("--canary 5% --batch 25%", Some(json!({"canary_percent": 5, "batch_percent": 25}))),
            ("--by cabinet --on-miss stop", Some(json!({"by": "cabinet", "on_miss": "stop"}))),
            (
                "--batch 10 --max-in-flight 20 --soak 5m --threshold 95%",
                Some(json!({"batch_count": 10, "max_in_flight": 20, "soak": 300, "threshold_percent": 95})),
            ),
        ] {
            let flags = ["reveille"].into_iter().chain(flags.split_whitespace());
            assert_eq!(TestCommand::try_parse_from(flags).unwrap().rollout.body(), expected);
        }
        for flags in ["--canary few", "--batch -1", "--threshold high", "--batch 2 --by cabinet", "--by rack"]
        {
            let flags = ["reveille"].into_iter().chain(flags.split_whitespace());
            assert!(TestCommand::try_parse_from(flags).is_err());
        }
    }
}
