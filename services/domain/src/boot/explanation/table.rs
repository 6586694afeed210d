//! Table of causes: for each one its class, its effect on the work, and the words for people.
//!
//! Texts have places for values, which [`super::wording`] fills. Rules decide by the variant alone.

use super::{cause::CauseReason, stage::BootStage};
use crate::core::explanation::{CauseClass, CauseOutcome};

/// Command of a next step, with places for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandText {
    /// A call of Reveille, which every site has.
    Own(&'static str),
    /// A call of the command line of a CSM machine; other sites have other tools.
    Csm(&'static str),
}

/// Row of the table.
#[derive(Debug)]
pub(super) struct CauseRow {
    pub(super) word: &'static str,
    pub(super) class: CauseClass,
    pub(super) outcome: CauseOutcome,
    /// First stage of a boot without proof; `None`: the cause is about no stage.
    pub(super) missing: Option<BootStage>,
    pub(super) sentence: &'static str,
    pub(super) advice: &'static str,
    pub(super) command: CommandText,
}

/// Shows the record of a node.
const SHOW_COMPONENT: &str = "reveille get components {node} -o wide";

/// Explains a node again.
const EXPLAIN_AGAIN: &str = "reveille explain {node}";

/// Shows the events of a node. It is also the command for a site without the tools that a row names.
pub(super) const SHOW_EVENTS: &str = "reveille events {node}";

/// Opens the console of a node.
const OPEN_CONSOLE: &str = "cray console interact {node}";

/// Shows the configuration of a node.
const SHOW_CONFIGURATION: &str = "cray cfs v3 components describe {node}";

/// Has Reveille act on a node anew, with all of its attempts.
const ENABLE_AGAIN: &str = "reveille enable {node}";

/// Shows the power of a node.
const SHOW_POWER: &str = "cray power status list --xnames {node}";

/// Shows the transitions of a node.
const SHOW_TRANSITIONS: &str = "reveille get transitions --node {node}";

/// Shows the inventory record of a node.
const SHOW_INVENTORY: &str = "cray hsm state components describe {node}";

/// Shows the boot data of a node.
const SHOW_BOOT_DATA: &str = "cray bss bootparameters list --name {node}";

/// Explains a session again.
const EXPLAIN_SESSION: &str = "reveille explain session {node}";

impl CauseReason {
    /// Returns the row of the table.
    pub(super) fn row(self) -> &'static CauseRow {
        match self {
            Self::AsWanted => &CauseRow {
                word: "as_wanted",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::AsWanted,
                missing: None,
                sentence: "{node} is as wanted{since}",
                advice: "Nothing is to be done.",
                command: CommandText::Own(SHOW_COMPONENT),
            },
            Self::PowerReadingAwaited => &CauseRow {
                word: "power_reading_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} awaits its first power reading",
                advice: "Wait: the power is being read.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::PowerActionDue => &CauseRow {
                word: "power_action_due",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is due to be switched{attempt}",
                advice: "Wait: the action begins within seconds.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::PowerOnAwaited => &CauseRow {
                word: "power_on_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::PowerOn),
                sentence: "{node} is not on yet{on_at}{attempt}",
                advice: "Wait until the time of the attempt is over.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::PowerOffAwaited => &CauseRow {
                word: "power_off_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is being shut down{since} and is still on{attempt}",
                advice: "Wait: it is forced off once its time is over.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::BootAwaited => &CauseRow {
                word: "boot_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::Reported),
                sentence: "{node} is on and has not reported its boot yet{on_at}{attempt}",
                advice: "Wait until the time of the attempt is over.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::BootScriptAwaited => &CauseRow {
                word: "boot_script_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::ScriptRequested),
                sentence: "{node} is on and has not asked for its boot script yet{on_at}{attempt}",
                advice: "Wait: its firmware may still be at work. Its console shows how far it is.",
                command: CommandText::Csm(OPEN_CONSOLE),
            },
            Self::BootReportAwaited => &CauseRow {
                word: "boot_report_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::Reported),
                sentence: "{node} fetched its boot script and has not reported its boot yet{attempt}",
                advice: "Wait: the kernel is starting.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::ConfigurationReadingAwaited => &CauseRow {
                word: "configuration_reading_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::Configured),
                sentence: "{node} awaits its first configuration reading",
                advice: "Wait: the configuration is being read.",
                command: CommandText::Own(EXPLAIN_AGAIN),
            },
            Self::ConfigurationPending => &CauseRow {
                word: "configuration_pending",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::Configured),
                sentence: "{node} has booted and is being configured{since}",
                advice: "Wait: the configuration service is at work, which has no time limit.",
                command: CommandText::Csm(SHOW_CONFIGURATION),
            },
            Self::StageWaiting => &CauseRow {
                word: "stage_waiting",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::Prepared),
                sentence: "{node} waits{since} for the state that session {session} staged to be applied",
                advice: "Apply the staged state.",
                command: CommandText::Own(
                    r#"curl -X POST "${REVEILLE_URL:-http://127.0.0.1:7700}/v2/applystaged" -H 'Content-Type: application/json' -d '{"xnames": ["{node}"]}'"#,
                ),
            },
            Self::NotEnabled => &CauseRow {
                word: "not_enabled",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is not enabled{since}, so nothing is done about it{words}",
                advice: "Enable it, or begin a session with it.",
                command: CommandText::Own(ENABLE_AGAIN),
            },
            Self::NothingWanted => &CauseRow {
                word: "nothing_wanted",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: None,
                sentence: "{node} is not enabled, and no session has set a state for it",
                advice: "Begin a session with a template that has it.",
                command: CommandText::Own("reveille get templates"),
            },
            Self::NodeLocked => &CauseRow {
                word: "node_locked",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is locked in the inventory{since}, so its power is left alone",
                advice: "Unlock the node if it may be switched.",
                command: CommandText::Csm("cray hsm locks unlock create --component-ids {node}"),
            },
            Self::PowerContested => &CauseRow {
                word: "power_contested",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} was switched off and on in turn too often{since}, so it is held",
                advice: "Find who else switches the node, then begin a session with it.",
                command: CommandText::Own(
                    "reveille events {node} --kind power_action_began,power_action_failed",
                ),
            },
            Self::PowerChangedOutside => &CauseRow {
                word: "power_changed_outside",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::PowerOn),
                sentence: "{node} was as wanted and is off{since}, and Reveille did not switch it",
                advice: "Find who switched it off, then begin a session with it, or enable it again.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::UnknownToInventory => &CauseRow {
                word: "unknown_to_inventory",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is not listed by the inventory{since}, so its power is left alone",
                advice: "Have the inventory discover the node, or remove it from the template.",
                command: CommandText::Csm(SHOW_INVENTORY),
            },
            Self::DisabledInInventory => &CauseRow {
                word: "disabled_in_inventory",
                class: CauseClass::Operator,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: the inventory has it disabled",
                advice: "Enable the node in the inventory, or create the session with include_disabled.",
                command: CommandText::Csm("cray hsm state components enabled update --enabled true {node}"),
            },
            Self::ComponentUnknown => &CauseRow {
                word: "component_unknown",
                class: CauseClass::Operator,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: there is no such component",
                advice: "Have the inventory discover the node, or correct the template.",
                command: CommandText::Own(SHOW_COMPONENT),
            },
            Self::GroupUnknown => &CauseRow {
                word: "group_unknown",
                class: CauseClass::Operator,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: the inventory has no such group or role",
                advice: "Correct the name in the template, or create the group.",
                command: CommandText::Csm("cray hsm groups list"),
            },
            Self::NotSelected => &CauseRow {
                word: "not_selected",
                class: CauseClass::Operator,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: the limit does not select it, or another boot set has it",
                advice: "Nothing, unless the limit is wrong: then create a session without it.",
                command: CommandText::Own(SHOW_COMPONENT),
            },
            Self::ForeignTenant => &CauseRow {
                word: "foreign_tenant",
                class: CauseClass::Tenant,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: it belongs to another tenant",
                advice: "Create the session for the tenant of the node.",
                command: CommandText::Csm("cray tapms tenants list"),
            },
            Self::ArchitectureMismatch => &CauseRow {
                word: "architecture_mismatch",
                class: CauseClass::Image,
                outcome: CauseOutcome::LeftOut,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out: its architecture differs from that of its boot set",
                advice: "Give nodes of each architecture a boot set of their own.",
                command: CommandText::Csm(SHOW_INVENTORY),
            },
            Self::UpstreamUnavailable => &CauseRow {
                word: "upstream_unavailable",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is held up by {peer}{since}{words}",
                advice: "See to what the words name; the work then goes on by itself.",
                command: CommandText::Own("reveille status"),
            },
            Self::TransitionAwaited => &CauseRow {
                word: "transition_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is held{since} by a power transition that is under way{words}",
                advice: "Wait: a transition ends with its action, or is withdrawn once its time is over.",
                command: CommandText::Own(SHOW_TRANSITIONS),
            },
            Self::TransitionOverdue => &CauseRow {
                word: "transition_overdue",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is held{since} by a power transition that does not end{words}",
                advice: "End it at the power service. If that fails, make sure that it has no further effect, then give it up here.",
                command: CommandText::Own("reveille transition abandon --node {node}"),
            },
            Self::ReservationKept => &CauseRow {
                word: "reservation_kept",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is held{since} by a power transition that was given up here{words}",
                advice: "End it at the power service: it may refuse the node to every other transition until then.",
                command: CommandText::Own(SHOW_TRANSITIONS),
            },
            Self::PowerStateUnknown => &CauseRow {
                word: "power_state_unknown",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::PowerOn),
                sentence: "{node} has no known power{since}{words}",
                advice: "See what the words name; without words, check the BMC of the node.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::PowerStateMismatch => &CauseRow {
                word: "power_state_mismatch",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::PowerOn),
                sentence: "{node} has just reported its boot and is shown as off",
                advice: "Wait: the next sample of the power decides.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::UnknownToPower => &CauseRow {
                word: "unknown_to_power",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} is left out by the power service{since}, so it is held",
                advice: "Have the power service learn of the node: discover its BMC again.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::UnknownToConfiguration => &CauseRow {
                word: "unknown_to_configuration",
                class: CauseClass::Upstream,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::Prepared),
                sentence: "{node} is left out by the configuration service{since}, so it is held",
                advice: "Have the configuration service learn of the node.",
                command: CommandText::Csm(SHOW_CONFIGURATION),
            },
            Self::PowerOnRefused => &CauseRow {
                word: "power_on_refused",
                class: CauseClass::Hardware,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} was not switched on: the power service refused{at}{attempt}{words}",
                advice: "Remove the obstacle that the words name, then have it tried again.",
                command: CommandText::Own(ENABLE_AGAIN),
            },
            Self::PowerOnTimedOut => &CauseRow {
                word: "power_on_timed_out",
                class: CauseClass::Hardware,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::PowerOn),
                sentence: "{node} never came on after it was switched on{at}{attempt}{words}",
                advice: "Check its BMC and the power of its slot, then have it tried again.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::PowerOffRefused => &CauseRow {
                word: "power_off_refused",
                class: CauseClass::Hardware,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} was not switched off: the power service refused{at}{attempt}{words}",
                advice: "Remove the obstacle that the words name, then have it tried again.",
                command: CommandText::Own(ENABLE_AGAIN),
            },
            Self::PowerOffTimedOut => &CauseRow {
                word: "power_off_timed_out",
                class: CauseClass::Hardware,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::PowerAccepted),
                sentence: "{node} stayed on after it was switched off{at}{attempt}{words}",
                advice: "Check its BMC, cut its power there, then have it tried again.",
                command: CommandText::Csm(SHOW_POWER),
            },
            Self::BootDataRefused => &CauseRow {
                word: "boot_data_refused",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Prepared),
                sentence: "{node} was not prepared for its boot{at}{attempt}{words}",
                advice: "Correct what the words name, in the image or at the service, then have it tried again.",
                command: CommandText::Own(ENABLE_AGAIN),
            },
            Self::BootScriptNotRequested => &CauseRow {
                word: "boot_script_not_requested",
                class: CauseClass::Network,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::ScriptRequested),
                sentence: "{node} was on and never asked for its boot script{on_at}{attempt}",
                advice: "Look at its console: DHCP, the boot program, the boot order or the cable of its boot interface fails.",
                command: CommandText::Csm(OPEN_CONSOLE),
            },
            Self::ArtifactFetchFailing => &CauseRow {
                word: "artifact_fetch_failing",
                class: CauseClass::Image,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Reported),
                sentence: "{node} asked for its boot script again and again and reported nothing{on_at}{attempt}",
                advice: "Check that kernel and initrd of the image exist and that the node can fetch them.",
                command: CommandText::Own(SHOW_COMPONENT),
            },
            Self::ReportMissing => &CauseRow {
                word: "report_missing",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Reported),
                sentence: "{node} fetched its boot script and never reported its boot{on_at}{attempt}",
                advice: "Look at its console: kernel, root file system, identity or the reporter of the image fails.",
                command: CommandText::Csm(OPEN_CONSOLE),
            },
            Self::BootUnreported => &CauseRow {
                word: "boot_unreported",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Reported),
                sentence: "{node} was on and never reported its boot{on_at}{attempt}",
                advice: "Look at its console for the last stage that it reached.",
                command: CommandText::Csm(OPEN_CONSOLE),
            },
            Self::OtherBootReported => &CauseRow {
                word: "other_boot_reported",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Reported),
                sentence: "{node} reported another boot than the wanted one{at}{attempt}",
                advice: "Compare what it booted with what the boot script service holds for it.",
                command: CommandText::Csm(SHOW_BOOT_DATA),
            },
            Self::EarlierBootReported => &CauseRow {
                word: "earlier_boot_reported",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Reported),
                sentence: "{node} reported an earlier boot{at}{attempt}",
                advice: "Check that it was restarted, and that the boot script service holds the new data.",
                command: CommandText::Csm(SHOW_BOOT_DATA),
            },
            Self::RetriesExhausted => &CauseRow {
                word: "retries_exhausted",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: None,
                sentence: "{node} was given up{at}{words}",
                advice: "Read its events, then have it tried again.",
                command: CommandText::Own(SHOW_EVENTS),
            },
            Self::ConfigurationNotStarted => &CauseRow {
                word: "configuration_not_started",
                class: CauseClass::Configuration,
                outcome: CauseOutcome::Waiting,
                missing: Some(BootStage::Configured),
                sentence: "{node} has booted and its configuration has not begun{since}",
                advice: "Check that the configuration service runs its batches and that the node asked for its configuration.",
                command: CommandText::Csm(SHOW_CONFIGURATION),
            },
            Self::ConfigurationRefused => &CauseRow {
                word: "configuration_refused",
                class: CauseClass::Configuration,
                outcome: CauseOutcome::Held,
                missing: Some(BootStage::Configured),
                sentence: "{node} has booted and its configuration is refused{since}{words}",
                advice: "Create that configuration, or correct its name in the template.",
                command: CommandText::Csm("cray cfs v3 configurations list"),
            },
            Self::ConfigurationFailed => &CauseRow {
                word: "configuration_failed",
                class: CauseClass::Configuration,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Configured),
                sentence: "{node} has booted and its configuration failed{at}",
                advice: "Read the log of its last configuration session, correct the layer, then have it tried again.",
                command: CommandText::Csm(SHOW_CONFIGURATION),
            },
            Self::ConfigurationUnknown => &CauseRow {
                word: "configuration_unknown",
                class: CauseClass::Configuration,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Configured),
                sentence: "{node} has booted and the state of its configuration is unknown{at}{words}",
                advice: "Compare the versions of the configuration service and of Reveille.",
                command: CommandText::Csm(SHOW_CONFIGURATION),
            },
            Self::SessionSetupDue => &CauseRow {
                word: "session_setup_due",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: Some(BootStage::Prepared),
                sentence: "Session {node} is about to select its nodes",
                advice: "Wait: it begins within seconds.",
                command: CommandText::Own(EXPLAIN_SESSION),
            },
            Self::SessionUnderWay => &CauseRow {
                word: "session_under_way",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Progressing,
                missing: None,
                sentence: "Session {node} is under way{since}{words}",
                advice: "Wait, or follow the causes of the nodes that are behind.",
                command: CommandText::Own(EXPLAIN_SESSION),
            },
            Self::SessionFailed => &CauseRow {
                word: "session_failed",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Prepared),
                sentence: "Session {node} could not do its work{since}{words}",
                advice: "Correct what the words name, then create the session again.",
                command: CommandText::Own("reveille events --session {node}"),
            },
            Self::NothingToActOn => &CauseRow {
                word: "nothing_to_act_on",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Failed,
                missing: Some(BootStage::Prepared),
                sentence: "Session {node} selected no node{since}",
                advice: "Read which nodes are left out and why, then correct the limit or the template.",
                command: CommandText::Own(EXPLAIN_SESSION),
            },
            Self::MembersFailed => &CauseRow {
                word: "members_failed",
                class: CauseClass::BootService,
                outcome: CauseOutcome::Failed,
                missing: None,
                sentence: "Session {node} is over{since}{words}",
                advice: "Remove the causes of the failed nodes, then enable them again.",
                command: CommandText::Own(EXPLAIN_SESSION),
            },
            Self::SessionAsWanted => &CauseRow {
                word: "session_as_wanted",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::AsWanted,
                missing: None,
                sentence: "Session {node} is over{since} and its nodes are as wanted",
                advice: "Nothing is to be done.",
                command: CommandText::Own("reveille session get {node}"),
            },
            Self::SessionSuperseded => &CauseRow {
                word: "session_superseded",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: None,
                sentence: "Session {node} is over{since}: others took over all of its nodes",
                advice: "Look at who took its nodes; nothing is to be done for this session.",
                command: CommandText::Own("reveille get sessions"),
            },
            Self::Superseded => &CauseRow {
                word: "superseded",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: None,
                sentence: "{node} was taken over by another session or an operator{since}",
                advice: "Look at who took it over; nothing is to be done for this session.",
                command: CommandText::Own(SHOW_COMPONENT),
            },
            Self::SessionPaused => &CauseRow {
                word: "session_paused",
                class: CauseClass::Operator,
                outcome: CauseOutcome::Held,
                missing: None,
                sentence: "Nothing begins for {node}{words}",
                advice: "Resume the session once its nodes may go on.",
                command: CommandText::Own("reveille session resume {session}"),
            },
            Self::BatchAwaited => &CauseRow {
                word: "batch_awaited",
                class: CauseClass::Waiting,
                outcome: CauseOutcome::Waiting,
                missing: None,
                sentence: "{node} waits for {batch} of session {session}{words}",
                advice: "Nothing is to be done: a batch opens once the one before it has proved itself.",
                command: CommandText::Own("reveille explain session {session}"),
            },
        }
    }
}
