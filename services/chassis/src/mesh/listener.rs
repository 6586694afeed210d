//! Listening sockets: on the network of the machine, or, in a simulation, in memory.

use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll},
};

use tokio::net::{TcpListener, TcpStream};

#[cfg(feature = "simulation")]
use crate::simulation::SimulatedListener;

/// Source of connections to a part.
pub enum Listener {
    /// A port of this machine.
    Tcp(TcpListener),
    /// A name in a network in memory.
    #[cfg(feature = "simulation")]
    Memory(SimulatedListener),
}

/// A connection that was accepted.
#[cfg(not(feature = "simulation"))]
pub(crate) type Accepted = TcpStream;

/// A connection that was accepted.
#[cfg(feature = "simulation")]
pub(crate) type Accepted = tokio_util::either::Either<TcpStream, tokio::io::DuplexStream>;

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Listener {
    /// Address of the listener, for logs.
    ///
    /// # Errors
    /// When the system does not report it.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => Ok(SocketAddr::from(([127, 0, 0, 1], 0))),
        }
    }

    /// The next connection.
    pub(crate) fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        match self {
            Self::Tcp(listener) => listener.poll_accept(context).map(|accepted| direct(accepted?.0)),
            #[cfg(feature = "simulation")]
            Self::Memory(listening) => listening.poll_accept(context).map(|pipe| Ok(Accepted::Right(pipe))),
        }
    }
}

fn direct(stream: TcpStream) -> io::Result<Accepted> {
    // With Nagle's delay small answers would take 40 ms.
    stream.set_nodelay(true)?;
    #[cfg(feature = "simulation")]
    let stream = Accepted::Left(stream);
    Ok(stream)
}
