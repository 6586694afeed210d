//! Items of lists of a spec.

use std::collections::HashSet;

use super::{Host, HostSpec, Violations, is_mac};

/// Checks the network interfaces: each is named one way, and once.
pub(super) fn check_interfaces(found: &mut Violations, spec: &HostSpec) {
    let mut known = HashSet::new();
    for (place, interface) in spec.interfaces.iter().enumerate() {
        let path = format!("spec.networkInterfaces[{place}]");
        let (name, mac) = (&*interface.name, &*interface.mac);
        let is_one = name.is_empty() != mac.is_empty();
        found.add(!is_one, &path, "has to have exactly one of name and macAddress");
        let is_named = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
        found.add(!is_named, &format!("{path}.name"), "may have letters, digits, '.', '_' and '-' only");
        let reason = "is not six pairs of hexadecimal digits with colons between";
        found.add(!mac.is_empty() && !is_mac(mac), &format!("{path}.macAddress"), reason);
        let switch = interface.switch.as_ref();
        let is_unknown = switch.is_some_and(|switch| !is_mac(switch));
        found.add(is_unknown, &format!("{path}.switchPort.switchID"), reason);
        let is_new = known.insert((name.to_ascii_lowercase(), mac.to_ascii_lowercase()));
        found.add(is_one && !is_new, &path, "names an interface a second time");
    }
}

/// Checks that no secret of another namespace is named: whoever may write hosts would read it.
pub(super) fn check_data_secrets(found: &mut Violations, host: &Host) {
    let own = &*host.meta.key.namespace;
    for secret in &host.spec.data_secrets {
        let is_foreign = ![own, ""].contains(&&*secret.namespace);
        let field = format!("spec.{}.namespace", secret.member);
        found.add(is_foreign, &field, "has to be the namespace of the host");
    }
}
