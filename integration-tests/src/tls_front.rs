//! TLS in front of systems that speak none.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::authority::{CertificateAuthority, CertificateValidity};

/// A proxy that terminates TLS in front of a system that does not.
#[derive(Clone)]
pub struct TlsFront {
    /// Address of the front, with `https`.
    pub url: String,
    config: Arc<Mutex<Arc<ServerConfig>>>,
    validity: Arc<Mutex<CertificateValidity>>,
}

impl TlsFront {
    /// Stands before the systems at `address` with a certificate of `authority`.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn before(
        address: SocketAddr,
        authority: &CertificateAuthority,
        validity: CertificateValidity,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a front");
        let config = Arc::new(Mutex::new(config(authority, validity)));
        let front = Self {
            url: format!("https://{}", listener.local_addr().expect("a front")),
            config: Arc::clone(&config),
            validity: Arc::new(Mutex::new(validity)),
        };
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(Arc::clone(&config.lock().expect("a front")));
                tokio::spawn(async move {
                    // A client that rejects the certificate closes the connection.
                    let Ok(mut connection) = acceptor.accept(connection).await else { return };
                    let mut system = TcpStream::connect(address).await.expect("a front");
                    // Either end may go at any time.
                    let _ended = tokio::io::copy_bidirectional(&mut connection, &mut system).await;
                });
            }
        });
        front
    }

    /// Shows a certificate of `authority` to new connections.
    ///
    /// # Panics
    /// When the certificate cannot be made.
    pub fn present(&self, authority: &CertificateAuthority) {
        let validity = *self.validity.lock().expect("a front");
        *self.config.lock().expect("a front") = config(authority, validity);
    }

    /// Makes the next certificate a valid one.
    ///
    /// # Panics
    /// When a user of the front has panicked.
    pub fn renew(&self) {
        *self.validity.lock().expect("a front") = CertificateValidity::Now;
    }
}

fn config(authority: &CertificateAuthority, validity: CertificateValidity) -> Arc<ServerConfig> {
    let issued = authority.certificate(validity);
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).expect("a front");
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("a front");
    let builder = ServerConfig::builder().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).expect("a front"))
}
