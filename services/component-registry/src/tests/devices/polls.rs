//! Polls of agents for a rendered spec.

use proto::device::{DeleteDeviceRequest, Device, PollRenderedDeviceRequest, WatchRenderedDeviceRequest};
use tonic::Code;

use super::{on_each_database, site};

/// Poll that waits for another version for as long as the registry allows.
fn patient_poll(name: &str, known: &str) -> PollRenderedDeviceRequest {
    PollRenderedDeviceRequest {
        name: name.to_owned(),
        known_version: Some(known.to_owned()),
        longest_wait: None,
        is_onlooker: false,
    }
}

fn version(device: Option<Device>) -> Option<u64> {
    device.map(|device| device.meta.unwrap().annotations.unwrap().rendered_version)
}

#[tokio::test]
async fn polls_deliver_what_is_new_and_wait_for_the_next_version() {
    on_each_database(async |site, _| {
        site.create_device("a", &[]).await;
        site.render("a", 1).await;
        assert_eq!(version(site.poll("a", None).await.unwrap()), Some(1));
        assert_eq!(version(site.poll("a", Some("0")).await.unwrap()), Some(1));
        assert_eq!(version(site.poll("a", Some("1")).await.unwrap()), None);
        let mut agents = site.agents();
        let poll = tokio::spawn(async move { agents.poll_rendered_device(patient_poll("a", "1")).await });
        let stream = WatchRenderedDeviceRequest { name: "a".to_owned(), known_version: "1".to_owned() };
        let mut stream = site.agents().watch_rendered_device(stream).await.unwrap().into_inner();
        site.render("a", 2).await;
        assert_eq!(version(poll.await.unwrap().unwrap().into_inner().device), Some(2));
        assert_eq!(version(stream.message().await.unwrap().unwrap().device), Some(2));
        site.render("a", 3).await;
        assert_eq!(version(stream.message().await.unwrap().unwrap().device), Some(3));
        let delete = DeleteDeviceRequest { name: "a".to_owned() };
        site.devices().delete_device(delete).await.unwrap();
        assert_eq!(stream.message().await.unwrap_err().code(), Code::NotFound);
        site.stop().await;
    })
    .await;
}

#[tokio::test]
async fn polls_at_one_replica_are_woken_by_another() {
    on_each_database(async |first, database| {
        // A file has one owner.
        if database.kind == "postgresql" {
            let second = site(database).await;
            first.create_device("a", &[]).await;
            first.render("a", 1).await;
            let mut agents = second.agents();
            let poll = tokio::spawn(async move { agents.poll_rendered_device(patient_poll("a", "1")).await });
            first.render("a", 2).await;
            assert_eq!(version(poll.await.unwrap().unwrap().into_inner().device), Some(2));
            assert_eq!(version(second.poll("a", Some("1")).await.unwrap()), Some(2));
            second.stop().await;
        }
        first.stop().await;
    })
    .await;
}
