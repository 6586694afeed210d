//! Hints for exploring the devices, with commands to copy.

use chassis::Settings;

use super::documents::FLEET;

/// Returns commands about the devices, one of which is `device`. Every line works as printed.
pub(super) fn around(settings: &Settings, device: &str) -> String {
    let gateway = &settings.gateway.url;
    let api = format!("{gateway}/flightctl/api/v1");
    let (port, data) = (&settings.gateway.agents.listen, settings.data_dir.display());
    let json = "-H 'Content-Type: application/json'";
    format!(
        "\
look around
  devices
    curl -s '{api}/devices?summaryOnly=true'
    curl -s '{api}/devices?fieldSelector=status.applicationsSummary.status%3DError'
    curl -s {api}/devices/{device}
    curl -s '{api}/events?fieldSelector=involvedObject.name%3D{device}'
    curl -s {api}/fleets/{FLEET}/templateversions
    curl -X PUT {json} -d '{{\"target\": \"Unenroll\"}}' {api}/devices/{device}/decommission
  agents, on their own port, which tells each what it may not do
    curl --cacert {data}/agents-certificate.pem --cert {data}/device-enrolment.pem https://{port}/api/v1/devices/{device}
"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn lines_have_the_addresses_and_names_in_force() {
        let mut settings = Settings::default();
        settings.gateway.url = "http://127.0.0.1:7800".into();
        settings.gateway.agents.listen = "127.0.0.1:7813".into();
        expect![[r#"
            look around
              devices
                curl -s 'http://127.0.0.1:7800/flightctl/api/v1/devices?summaryOnly=true'
                curl -s 'http://127.0.0.1:7800/flightctl/api/v1/devices?fieldSelector=status.applicationsSummary.status%3DError'
                curl -s http://127.0.0.1:7800/flightctl/api/v1/devices/d1
                curl -s 'http://127.0.0.1:7800/flightctl/api/v1/events?fieldSelector=involvedObject.name%3Dd1'
                curl -s http://127.0.0.1:7800/flightctl/api/v1/fleets/kiosks/templateversions
                curl -X PUT -H 'Content-Type: application/json' -d '{"target": "Unenroll"}' http://127.0.0.1:7800/flightctl/api/v1/devices/d1/decommission
              agents, on their own port, which tells each what it may not do
                curl --cacert reveille-data/agents-certificate.pem --cert reveille-data/device-enrolment.pem https://127.0.0.1:7813/api/v1/devices/d1
        "#]]
        .assert_eq(&around(&settings, "d1"));
    }
}
