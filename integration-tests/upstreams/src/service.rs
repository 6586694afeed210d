//! Finds the system and the operation of a request.

use axum::http::Method;
use serde::{Deserialize, Serialize};

use crate::{bss, cfs, hsm, ims, pcs, s3, tapms};

/// A system around the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Hardware state manager, SMD v2.
    Hsm,
    /// Power control service.
    Pcs,
    /// Boot script service.
    Bss,
    /// Configuration framework service, v3.
    Cfs,
    /// Image management service, v3.
    Ims,
    /// S3-compatible object store.
    S3,
    /// Tenant and partition management service.
    Tapms,
}

/// Paths of the systems: behind an API gateway, and direct. The second member stays part of the path that a system
/// sees.
const PREFIXES: &[(&str, &str, Service)] = &[
    ("/apis/smd/hsm/v2", "", Service::Hsm),
    ("/hsm/v2", "", Service::Hsm),
    ("/apis/power-control/v1", "", Service::Pcs),
    ("/apis/power-control", "", Service::Pcs),
    ("/power-status", "/power-status", Service::Pcs),
    ("/transitions", "/transitions", Service::Pcs),
    ("/apis/bss/boot/v1", "", Service::Bss),
    ("/boot/v1", "", Service::Bss),
    ("/apis/cfs/v3", "", Service::Cfs),
    ("/apis/cfs", "", Service::Cfs),
    ("/healthz", "/healthz", Service::Cfs),
    ("/apis/ims/v3", "", Service::Ims),
    ("/v3/images", "/images", Service::Ims),
    ("/v3", "", Service::Cfs),
    ("/apis/tapms/v1alpha3", "", Service::Tapms),
    ("/v1alpha3", "", Service::Tapms),
];

impl Service {
    /// Every system.
    pub const ALL: [Self; 7] = [Self::Hsm, Self::Pcs, Self::Bss, Self::Cfs, Self::Ims, Self::S3, Self::Tapms];

    /// Returns the short name of the system.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hsm => "hsm",
            Self::Pcs => "pcs",
            Self::Bss => "bss",
            Self::Cfs => "cfs",
            Self::Ims => "ims",
            Self::S3 => "s3",
            Self::Tapms => "tapms",
        }
    }

    /// The system with this short name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.word() == word)
    }

    /// The system that answers at `path`, and the path as it sees it. A path that no other system claims is an object
    /// of the store.
    pub(crate) fn at(path: &str) -> (Self, String) {
        for (prefix, keeps, service) in PREFIXES {
            if let Some(rest) = path.strip_prefix(prefix)
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return (*service, format!("{keeps}{rest}"));
            }
        }
        (Self::S3, path.to_owned())
    }

    /// Operations of the system: method and path, `{…}` standing for one segment and `{*…}` for all that follow.
    fn operations(self) -> &'static [&'static str] {
        match self {
            Self::Hsm => hsm::OPERATIONS,
            Self::Pcs => pcs::OPERATIONS,
            Self::Bss => bss::OPERATIONS,
            Self::Cfs => cfs::OPERATIONS,
            Self::Ims => ims::OPERATIONS,
            Self::S3 => s3::OPERATIONS,
            Self::Tapms => tapms::OPERATIONS,
        }
    }

    /// Which operation a request is, and the parts of the path that name something.
    pub(crate) fn operation<'p>(
        self,
        method: &Method,
        path: &'p str,
    ) -> Option<(&'static str, Vec<&'p str>)> {
        self.operations().iter().find_map(|operation| {
            let (wanted, pattern) = operation.split_once(' ')?;
            let names = (wanted == method.as_str()).then(|| names(pattern, path))?;
            Some((*operation, names?))
        })
    }
}

fn names<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut names, mut rest) = (Vec::new(), path.trim_end_matches('/').strip_prefix('/')?);
    let mut segments = pattern.trim_start_matches('/').split('/').peekable();
    while let Some(segment) = segments.next() {
        if segment.starts_with("{*") {
            names.push(rest);
            return (!rest.is_empty()).then_some(names);
        }
        let (first, behind) = match rest.split_once('/') {
            Some((first, behind)) => (first, Some(behind)),
            None => (rest, None),
        };
        match segment.starts_with('{') {
            true if !first.is_empty() => names.push(first),
            false if first == segment => {}
            true | false => return None,
        }
        match (behind, segments.peek()) {
            (Some(behind), Some(_)) => rest = behind,
            (None, None) => return Some(names),
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn requests_are_told_apart_by_their_path() {
        let requests = [
            "GET /apis/smd/hsm/v2/State/Components",
            "POST /hsm/v2/State/Components/Query",
            "GET /hsm/v2/State/Components/x1000c0s0b0n0",
            "POST /apis/power-control/v1/power-status",
            "POST /power-status",
            "GET /transitions/",
            "GET /apis/power-control/v1/transitions/one",
            "PUT /apis/bss/boot/v1/bootparameters",
            "GET /boot/v1/bootscript",
            "PATCH /apis/cfs/v3/components",
            "GET /v3/components/x1000c0s0b0n0",
            "GET /apis/cfs/healthz",
            "GET /v3/images/compute",
            "PATCH /apis/ims/v3/images/compute",
            "GET /v1alpha3/tenants",
            "GET /apis/tapms/v1alpha3/tenants/blue",
            "HEAD /boot-images/compute/manifest.json",
            "GET /boot-images",
            "GET /v3elsewhere/key",
            "DELETE /power-status",
            "POST /hsm/v2/nothing/like/it",
        ];
        let seen = requests.map(|request| {
            let (method, path) = request.split_once(' ').expect("two words");
            let (service, path) = Service::at(path);
            let operation = service.operation(&method.parse().expect("a method"), &path);
            format!("{request}: {} {operation:?}\n", service.word())
        });
        expect![[r#"
            GET /apis/smd/hsm/v2/State/Components: hsm Some(("GET /State/Components", []))
            POST /hsm/v2/State/Components/Query: hsm Some(("POST /State/Components/Query", []))
            GET /hsm/v2/State/Components/x1000c0s0b0n0: hsm Some(("GET /State/Components/{id}", ["x1000c0s0b0n0"]))
            POST /apis/power-control/v1/power-status: pcs Some(("POST /power-status", []))
            POST /power-status: pcs Some(("POST /power-status", []))
            GET /transitions/: pcs Some(("GET /transitions", []))
            GET /apis/power-control/v1/transitions/one: pcs Some(("GET /transitions/{id}", ["one"]))
            PUT /apis/bss/boot/v1/bootparameters: bss Some(("PUT /bootparameters", []))
            GET /boot/v1/bootscript: bss Some(("GET /bootscript", []))
            PATCH /apis/cfs/v3/components: cfs Some(("PATCH /components", []))
            GET /v3/components/x1000c0s0b0n0: cfs Some(("GET /components/{id}", ["x1000c0s0b0n0"]))
            GET /apis/cfs/healthz: cfs Some(("GET /healthz", []))
            GET /v3/images/compute: ims Some(("GET /images/{id}", ["compute"]))
            PATCH /apis/ims/v3/images/compute: ims Some(("PATCH /images/{id}", ["compute"]))
            GET /v1alpha3/tenants: tapms Some(("GET /tenants", []))
            GET /apis/tapms/v1alpha3/tenants/blue: tapms Some(("GET /tenants/{name}", ["blue"]))
            HEAD /boot-images/compute/manifest.json: s3 Some(("HEAD /{bucket}/{*key}", ["boot-images", "compute/manifest.json"]))
            GET /boot-images: s3 None
            GET /v3elsewhere/key: s3 Some(("GET /{bucket}/{*key}", ["v3elsewhere", "key"]))
            DELETE /power-status: pcs None
            POST /hsm/v2/nothing/like/it: hsm None
        "#]].assert_eq(&seen.concat());
    }
}
