use std::fmt::Write;

use expect_test::expect;

use super::scene::{MOMENT, scene};
use crate::host::{conditions, record::state::HostState};

/// Returns the conditions of a scene in short: `+` true, `-` false, `?` unknown.
fn conditions(words: &str) -> String {
    let mut scene = scene(words);
    conditions::refresh(&mut scene.host.status, &scene.seen.driver, MOMENT.now);
    let short = scene.host.status.conditions.iter().map(|condition| {
        let sign = match condition.status.word() {
            "True" => '+',
            "False" => '-',
            _ => '?',
        };
        format!("{sign}{}:{}", condition.kind.word(), condition.reason.word())
    });
    short.collect::<Vec<_>>().join(" ")
}

#[test]
fn conditions_follow_state_and_trouble() {
    let mut seen = String::new();
    for state in HostState::ALL.into_iter().skip(1) {
        let line = conditions(&format!("in:{}", state.word().replace(' ', "-")));
        writeln!(seen, "{}: {line}", state.word()).expect("a string takes every text");
    }
    for words in [
        "in:registering error:registration",
        "in:provisioned error:power-management",
        "in:provisioned op:servicing",
        "in:provisioned op:detached power-failure",
        "in:provisioned power-failure ailing",
        "in:registering power-failure",
        "in:deleting power-failure",
        "in:available unlisted",
    ] {
        writeln!(seen, "{words}: {}", conditions(words)).expect("a string takes every text");
    }
    expect![[r#"
        unmanaged: -Manageable:NotManaged -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned -Progressing:NotProgressing ?Healthy:Unknown
        registering: -Manageable:Registering -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Registering ?Healthy:Unknown
        inspecting: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Inspecting ?Healthy:Unknown
        match profile: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Inspecting ?Healthy:Unknown
        preparing: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Preparing ?Healthy:Unknown
        available: +Manageable:Manageable +AvailableForProvisioning:Available -Provisioned:NotProvisioned -Ready:NotProvisioned -Progressing:NotProgressing ?Healthy:Unknown
        ready: +Manageable:Manageable +AvailableForProvisioning:Available -Provisioned:NotProvisioned -Ready:NotProvisioned -Progressing:NotProgressing ?Healthy:Unknown
        provisioning: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Provisioning ?Healthy:Unknown
        provisioned: +Manageable:Manageable -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned +Ready:Provisioned -Progressing:NotProgressing ?Healthy:Unknown
        externally provisioned: +Manageable:Manageable -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned +Ready:Provisioned -Progressing:NotProgressing ?Healthy:Unknown
        deprovisioning: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Deprovisioning ?Healthy:Unknown
        powering off before delete: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:PoweringOffBeforeDelete ?Healthy:Unknown
        deleting: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Deleting ?Healthy:Unknown
        in:registering error:registration: -Manageable:RegistrationFailed -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:Error +Progressing:Registering ?Healthy:Unknown
        in:provisioned error:power-management: +Manageable:Manageable -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned -Ready:Error -Progressing:NotProgressing ?Healthy:Unknown
        in:provisioned op:servicing: +Manageable:Manageable -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned -Ready:Servicing -Progressing:NotProgressing ?Healthy:Unknown
        in:provisioned op:detached power-failure: +Manageable:Manageable -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned -Ready:Detached -Progressing:Detached ?Healthy:Unknown
        in:provisioned power-failure ailing: -Manageable:PowerFailure -AvailableForProvisioning:NotAvailable +Provisioned:Provisioned +Ready:Provisioned -Progressing:NotProgressing -Healthy:CriticalError
        in:registering power-failure: -Manageable:Registering -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Registering ?Healthy:Unknown
        in:deleting power-failure: +Manageable:Manageable -AvailableForProvisioning:NotAvailable -Provisioned:NotProvisioned -Ready:NotProvisioned +Progressing:Deleting ?Healthy:Unknown
        in:available unlisted: +Manageable:Manageable +AvailableForProvisioning:Available -Provisioned:NotProvisioned -Ready:NotProvisioned -Progressing:NotProgressing ?Healthy:Unknown
    "#]].assert_eq(&seen);
}
