//! Images in the image management service.

use std::time::Duration;

use chassis::settings::{CatalogueDriver, Images};
use expect_test::expect;
use session_manager::catalogue::ImageCatalogue;

use crate::site::{Site, peer, words};

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn images_have_an_architecture_if_they_exist() {
    let ims = Site::start().await;
    for (path, status, body) in [
        ("/v3/images/arm", 200, r#"{"id": "arm", "arch": "aarch64", "link": null}"#),
        ("/v3/images/null", 200, r#"{"id": "null", "arch": null}"#),
        ("/v3/images/old", 200, r#"{"id": "old"}"#),
        ("/v3/images/a%20b%3Fc%23", 200, r#"{"arch": "x86_64"}"#),
        ("/v3/images/broken", 500, r#"{"detail": "the database is gone"}"#),
        ("/v3/images/closed", 401, r#"{"detail": "who are you"}"#),
        ("/v3/images/odd", 200, r#"{"arch": 3}"#),
    ] {
        ims.says(path, status, body);
    }
    let usual = Images::default();
    let ims_peer = peer(&format!("{}/v3", ims.url), usual.ims.clone());
    let settings = Images { catalogue: CatalogueDriver::Ims, ims: ims_peer, ..usual };
    let mut rows = String::new();
    for id in ["arm", "null", "old", "a b?c#", "missing", "closed", "broken", "odd"] {
        // Each answer gets a catalogue of its own: a peer that answers with 500 opens its circuit.
        let told = match ImageCatalogue::new(&settings).unwrap().image(id, LONG).await {
            Ok(listing) => format!("{listing:?}"),
            Err(failure) => words(&failure.text).to_owned(),
        };
        rows += &format!("{id}: {told}\n");
    }
    expect![[r#"
        arm: Image { arch: "aarch64" }
        null: Image { arch: "x86_64" }
        old: Image { arch: "x86_64" }
        a b?c#: Image { arch: "x86_64" }
        missing: Absent
        closed: 401 Unauthorized: who are you
        broken: 500 Internal Server Error: the database is gone
        odd: not the JSON that was expected: invalid type: integer `3`, expected a string at line 1 column 10
    "#]]
    .assert_eq(&rows);
    assert!(!ImageCatalogue::new(&Images::default()).unwrap().exists());
}
