//! The readiness that a served part reports.

use chassis::{Channel, Context, Server};
use tokio::net::TcpListener;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

pub struct Served(HealthClient<Channel>);

impl Served {
    /// Serves a part that has started and has no services of its own.
    pub async fn start(context: &Context) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        chassis::serve(context, "note", listener, Server::default()).await.unwrap().now();
        Self(HealthClient::new(chassis::plain_channel(&url).unwrap()))
    }

    pub async fn is_ready(&self) -> bool {
        let whole = HealthCheckRequest { service: String::new() };
        let told = self.0.clone().check(whole).await.unwrap();
        told.get_ref().status() == ServingStatus::Serving
    }

    /// Waits until the part is ready, or is not.
    pub async fn eventually_is(&self, ready: bool) {
        let told = async {
            while self.is_ready().await != ready {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(30), told).await.unwrap();
    }

    /// Checks that the part is not ready, even after the first trials.
    pub async fn stays_unready(&self) {
        for _ in 0..150 {
            assert!(!self.is_ready().await);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}
