//! Selection of tokens of past boots that can be forgotten (BUG-17).

use std::{collections::HashSet, time::Duration};

use crate::{boot::component::Component, core::time::Timestamp};

/// Age up to which a booting node may still report a token: far beyond the slowest boot.
const LONGEST_BOOT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns those of `tokens`, each with the time at which it was stored, that no component wants or runs and that are
/// too old to be reported any more.
pub fn superseded<'a>(
    tokens: impl IntoIterator<Item = (&'a str, Timestamp)>,
    components: impl IntoIterator<Item = &'a Component>,
    now: Timestamp,
) -> Vec<String> {
    let in_use: HashSet<&str> = components.into_iter().flat_map(in_use).collect();
    let tokens = tokens.into_iter();
    let superseded =
        tokens.filter(|(token, stored_at)| now.since(*stored_at) > LONGEST_BOOT && !in_use.contains(token));
    superseded.map(|(token, _)| token.to_owned()).collect()
}

fn in_use(component: &Component) -> impl Iterator<Item = &str> {
    let desired = component.wish.desired_state.as_ref().and_then(|state| state.bss_token.as_deref());
    let actual = component.reported.actual_state.as_ref().and_then(|state| state.bss_token.as_deref());
    let begun = component.reported.boot.as_ref().map(|boot| &*boot.token.token);
    desired.into_iter().chain(actual).chain(begun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::component::{ActualState, ComponentWish, DesiredState, ReportedBoots, view::bare};

    #[test]
    fn old_tokens_that_nobody_wants_or_runs_are_superseded() {
        let text = |token: &str| Some(token.to_owned());
        let wants = Component {
            wish: ComponentWish {
                desired_state: Some(DesiredState {
                    bss_token: text("wanted").map(Into::into),
                    ..DesiredState::default()
                }),
                ..ComponentWish::default()
            }
            .into(),
            ..bare()
        };
        let runs = Component {
            reported: ReportedBoots {
                actual_state: Some(ActualState {
                    bss_token: text("running").map(Into::into),
                    ..ActualState::default()
                }),
                ..ReportedBoots::default()
            },
            ..bare()
        };
        let now = Timestamp(0).plus(LONGEST_BOOT).plus(Duration::from_millis(1));
        let old = Timestamp(0);
        let young = Timestamp(1);
        let tokens = [
            ("wanted", old),
            ("running", old),
            ("old", old),
            ("young", young),
            ("early", now.plus(LONGEST_BOOT)),
        ];
        assert_eq!(superseded(tokens, [&wants, &runs, &bare()], now), ["old"]);
    }
}
