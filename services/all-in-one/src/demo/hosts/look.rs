//! Hints for exploring the hosts, with commands to copy.

use chassis::Settings;

use super::{super::rest::KUBERNETES, rack::DemoHost};

/// Returns commands about the hosts and their session. Every line works as printed, in this order.
pub(super) fn around(settings: &Settings, hosts: &[DemoHost], session: &str) -> String {
    let gateway = &settings.gateway.url;
    let kubectl = format!("kubectl --server {gateway}{KUBERNETES}");
    let first = hosts.first().map(DemoHost::name).unwrap_or_default();
    let component = hosts.first().map(DemoHost::xname).unwrap_or_default();
    let last = hosts.last().map(DemoHost::name).unwrap_or_default();
    format!(
        "\
look around
  kubectl (API at {gateway}{KUBERNETES})
    {kubectl} get bmh -A
    {kubectl} describe bmh {first}
    {kubectl} get events
    {kubectl} annotate bmh {first} reboot.metal3.io=
    {kubectl} patch bmh {first} --type merge --patch '{{\"spec\": {{\"online\": false}}}}'
    {kubectl} delete bmh {last}
  REST
    curl -s {gateway}/apis/bos/v2/components/{component}
    curl -s {gateway}/apis/bos/v2/sessions/{session}/status
    curl -s '{gateway}/reveille/v1/events?component={component}'
"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::demo::hosts::rack;

    #[test]
    fn lines_have_the_address_and_names_in_force() {
        let mut settings = Settings::default();
        settings.gateway.url = "http://127.0.0.1:7800".into();
        expect![[r#"
            look around
              kubectl (API at http://127.0.0.1:7800/kubernetes)
                kubectl --server http://127.0.0.1:7800/kubernetes get bmh -A
                kubectl --server http://127.0.0.1:7800/kubernetes describe bmh node-1
                kubectl --server http://127.0.0.1:7800/kubernetes get events
                kubectl --server http://127.0.0.1:7800/kubernetes annotate bmh node-1 reboot.metal3.io=
                kubectl --server http://127.0.0.1:7800/kubernetes patch bmh node-1 --type merge --patch '{"spec": {"online": false}}'
                kubectl --server http://127.0.0.1:7800/kubernetes delete bmh node-8
              REST
                curl -s http://127.0.0.1:7800/apis/bos/v2/components/x1000c0s0b0n0
                curl -s http://127.0.0.1:7800/apis/bos/v2/sessions/first-light/status
                curl -s 'http://127.0.0.1:7800/reveille/v1/events?component=x1000c0s0b0n0'
        "#]]
        .assert_eq(&around(&settings, &rack::hosts(8), "first-light"));
    }
}
