//! Paths of the API.

use percent_encoding::percent_decode_str;

use super::super::kinds::{self, ResourceKind};

/// Meaning of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum ApiPath {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez` or `/readyz`.
    Health,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1` or `/apis/{group}/{version}`.
    Resources {
        /// Group; empty for the core.
        group: String,
        version: String,
    },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3,
    /// `/openapi/v3/{group and version}`.
    OpenApiV3Of(String),
    /// Objects of a kind.
    Objects(ObjectPath),
    /// Anything else.
    Unknown,
}

/// Path of an object or a collection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectPath {
    pub kind: &'static ResourceKind,
    /// Namespace; none: all namespaces, or the kind has none.
    pub namespace: Option<String>,
    /// Name; none: the collection.
    pub name: Option<String>,
    /// Subresource, such as `status`.
    pub subresource: Option<String>,
}

impl ApiPath {
    /// Reads a path. Empty segments are ignored, names are decoded once.
    pub(crate) fn read(path: &str) -> Self {
        let segments: Vec<String> =
            path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match &segments[..] {
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiV3,
            ["openapi", "v3", rest @ ..] => Self::OpenApiV3Of(rest.join("/")),
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => resources("", version),
            ["apis", group, version] => resources(group, version),
            ["api", version, rest @ ..] => objects("", version, rest),
            ["apis", group, version, rest @ ..] => objects(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

fn resources(group: &str, version: &str) -> ApiPath {
    ApiPath::Resources { group: group.to_owned(), version: version.to_owned() }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> ApiPath {
    let object = match rest {
        ["namespaces", namespace, plural, rest @ ..] if *plural != "status" => {
            within(group, version, plural, Some(namespace), rest)
        }
        [plural, rest @ ..] => within(group, version, plural, None, rest),
        [] => None,
    };
    object.map_or(ApiPath::Unknown, ApiPath::Objects)
}

fn within(
    group: &str,
    version: &str,
    plural: &str,
    namespace: Option<&str>,
    rest: &[&str],
) -> Option<ObjectPath> {
    let kind = kinds::find(group, version, plural)?;
    // A kind without namespaces is in none; a single object of another kind is in one.
    if namespace.is_some() && !kind.is_namespaced
        || namespace.is_none() && kind.is_namespaced && !rest.is_empty()
    {
        return None;
    }
    let (name, subresource) = match rest {
        [] => (None, None),
        [name] => (Some(*name), None),
        [name, subresource] => (Some(*name), Some(*subresource)),
        _ => return None,
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(ObjectPath { kind, namespace: owned(namespace), name: owned(name), subresource: owned(subresource) })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn paths_name_objects_in_their_places() {
        let paths = [
            "/api/v1/namespaces",
            "/api/v1/namespaces/m",
            "/api/v1/namespaces/m/secrets/a.b",
            "/api/v1/namespaces/m/status",
            "/apis/metal3.io/v1alpha1/baremetalhosts",
            "/apis/metal3.io/v1alpha1/baremetalhosts/x",
            "//apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts/a%2Db/status/",
            "/apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts/x/y/z",
            "/apis/metal3.io/v1/namespaces/m/baremetalhosts",
            "/api/v1/namespaces/m/namespaces/x",
            "/version/",
            "/openapi/v3/apis/metal3.io/v1alpha1",
            "/apis/metal3.io",
            "/swagger-2.0.0.pb-v1",
        ];
        let rows = paths.map(|path| match ApiPath::read(path) {
            ApiPath::Objects(ObjectPath { kind, namespace, name, subresource }) => {
                format!("{path} -> {} {namespace:?} {name:?} {subresource:?}\n", kind.kind)
            }
            other => format!("{path} -> {other:?}\n"),
        });
        expect![[r#"
            /api/v1/namespaces -> Namespace None None None
            /api/v1/namespaces/m -> Namespace None Some("m") None
            /api/v1/namespaces/m/secrets/a.b -> Secret Some("m") Some("a.b") None
            /api/v1/namespaces/m/status -> Namespace None Some("m") Some("status")
            /apis/metal3.io/v1alpha1/baremetalhosts -> BareMetalHost None None None
            /apis/metal3.io/v1alpha1/baremetalhosts/x -> Unknown
            //apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts/a%2Db/status/ -> BareMetalHost Some("m") Some("a-b") Some("status")
            /apis/metal3.io/v1alpha1/namespaces/m/baremetalhosts/x/y/z -> Unknown
            /apis/metal3.io/v1/namespaces/m/baremetalhosts -> Unknown
            /api/v1/namespaces/m/namespaces/x -> Unknown
            /version/ -> Version
            /openapi/v3/apis/metal3.io/v1alpha1 -> OpenApiV3Of("apis/metal3.io/v1alpha1")
            /apis/metal3.io -> Group("metal3.io")
            /swagger-2.0.0.pb-v1 -> Unknown
        "#]].assert_eq(&rows.concat());
    }
}
