//! Path of a request as rules see it.

use percent_encoding::percent_decode_str;

/// Prefix under which the paths of BOS are served beside the root.
const BOS: [&str; 2] = ["apis", "bos"];

/// Returns the segments of a path on the common port: decoded once, without empty ones, and without the prefix of BOS. Faces
/// read a path no more loosely than that, so that a rule about a path covers every spelling that a face accepts.
pub fn operation_path(path: &str) -> Vec<String> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let decoded = segments.map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned());
    let segments: Vec<_> = decoded.collect();
    match segments.strip_prefix(&BOS.map(str::to_owned)[..]) {
        Some(rest) => rest.to_vec(),
        None => segments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_are_one_path() {
        for (path, segments) in [
            ("/v2/components/x1", "v2 components x1"),
            ("/apis/bos/v2/components/x1", "v2 components x1"),
            ("//v2/components//x1/", "v2 components x1"),
            ("/v2/components/x%31", "v2 components x1"),
            ("/v2/components/a%2Fb", "v2 components a/b"),
            ("/apis/metal3.io/v1alpha1", "apis metal3.io v1alpha1"),
            ("/apis/bos", ""),
            ("/", ""),
        ] {
            assert_eq!(operation_path(path).join(" "), segments, "{path}");
        }
    }
}
