//! The endpoints of every part beside its gRPC.

use chassis::{Context, Server, Settings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[tokio::test]
async fn every_part_serves_the_metrics_of_the_process_over_http_1() {
    let context = Context::new(Settings::default());
    let mut addresses = Vec::new();
    for part in ["one", "other"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.push(listener.local_addr().unwrap());
        chassis::serve(&context, part, listener, Server::default()).await.unwrap();
    }
    metrics::counter!("reveille_tested_total", "what" => "metrics").increment(3);
    for address in addresses {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nhost: part\r\nconnection: close\r\n\r\n";
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("reveille_tested_total{what=\"metrics\"} 3"), "{answer}");
    }
    context.tasks.shutdown().cancel();
    context.tasks.finished(std::time::Duration::from_secs(5)).await.unwrap();
}
