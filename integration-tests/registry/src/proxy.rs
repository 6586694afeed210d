//! Proxy in front of the registry that plays faults by the name of the method.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::Response,
};
use http::Request;
use http_body::{Frame, SizeHint};
use prost::Message;
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Status,
    client::GrpcService,
    service::Routes,
    transport::{Channel, Endpoint, Server},
};

/// Bytes before a message: whether it is compressed, and its length.
const MESSAGE_PREFIX: usize = 5;

/// Fault of the calls of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFault {
    /// Calls wait, and open streams deliver nothing, until the fault is over.
    Held,
    /// Calls whose request contains this text wait until the fault is over.
    HeldAbout(String),
    /// Calls are answered that the registry is unavailable.
    Refused,
    /// Calls do not arrive, and are never answered.
    Lost,
    /// Calls arrive, and are never answered.
    Unanswered,
}

/// Proxy of a registry. Clones share it.
#[derive(Clone)]
pub struct RegistryProxy {
    /// Address of the proxy.
    pub(crate) url: String,
    state: Arc<watch::Sender<ProxyState>>,
}

#[derive(Default)]
struct ProxyState {
    /// Connection to the registry; `None`: it does not run.
    registry: Option<Channel>,
    faults: HashMap<&'static str, CallFault>,
    /// Requests so far, by method.
    requests: HashMap<String, Vec<Bytes>>,
    /// Number of times that all streams were cut.
    cuts: u64,
}

impl RegistryProxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let proxy = Self { url, state: Arc::default() };
        let router = Router::new().fallback(forward).with_state(proxy.clone());
        let serving = Server::builder()
            .add_routes(Routes::from(router))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        proxy
    }

    /// Forwards later calls to the registry at `url`; `None`: they are refused.
    pub(crate) fn forward_to(&self, url: Option<&str>) {
        let endpoint = url.map(|url| Endpoint::from_shared(url.to_owned()).expect("an address"));
        self.state.send_modify(|state| state.registry = endpoint.map(|endpoint| endpoint.connect_lazy()));
    }

    /// Begins a fault of a method, such as `WatchComponents`.
    pub fn fault(&self, method: &'static str, fault: CallFault) {
        self.state.send_modify(|state| drop(state.faults.insert(method, fault)));
    }

    /// Ends the fault of a method.
    pub fn mend(&self, method: &str) {
        self.state.send_modify(|state| drop(state.faults.remove(method)));
    }

    /// Ends all streams with an error.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Returns the number of calls of a method so far.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.state.borrow().requests.get(method).map_or(0, Vec::len)
    }

    /// Returns the requests of a method so far, in their order.
    ///
    /// # Panics
    /// When they are no messages of this type.
    #[must_use]
    pub fn requests<M: Message + Default>(&self, method: &str) -> Vec<M> {
        let state = self.state.borrow();
        let requests = state.requests.get(method).into_iter().flatten();
        requests.map(|request| M::decode(&request[MESSAGE_PREFIX..]).expect("a message")).collect()
    }

    /// Waits until a method was called that many times.
    ///
    /// # Panics
    /// When that takes too long.
    pub async fn called(&self, method: &str, count: usize) {
        let mut state = self.state.subscribe();
        let called = state.wait_for(|state| state.requests.get(method).map_or(0, Vec::len) >= count);
        let called = tokio::time::timeout(crate::PATIENCE, called).await;
        called.unwrap_or_else(|_| panic!("{method} was never called {count} times")).expect("a proxy");
    }

    /// Waits until calls with this request are not held.
    async fn released(&self, method: &str, request: &[u8]) {
        let mut state = self.state.subscribe();
        let released = state.wait_for(|state| !state.holds(method, request)).await;
        drop(released.expect("a proxy"));
    }

    /// Returns the answer to a call.
    async fn answer(&self, method: &str, request: http::request::Parts, message: Bytes) -> Response {
        self.released(method, &message).await;
        let (fault, registry) = {
            let state = self.state.borrow();
            (state.faults.get(method).cloned(), state.registry.clone())
        };
        let lost = fault == Some(CallFault::Lost);
        let refused = fault == Some(CallFault::Refused);
        let Some(mut registry) = registry.filter(|_| !refused) else { return unavailable() };
        if lost {
            return std::future::pending().await;
        }
        let cuts = self.state.borrow().cuts;
        let request = Request::from_parts(request, tonic::body::Body::new(Body::from(message)));
        let answer = call(&mut registry, request).await;
        if fault == Some(CallFault::Unanswered) {
            return std::future::pending().await;
        }
        match answer {
            Ok(answer) => answer.map(|body| Body::new(GatedBody::new(self, method, cuts, body))),
            Err(_) => unavailable(),
        }
    }
}

impl ProxyState {
    fn holds(&self, method: &str, request: &[u8]) -> bool {
        match self.faults.get(method) {
            Some(CallFault::Held) => true,
            Some(CallFault::HeldAbout(text)) => {
                request.windows(text.len()).any(|window| window == text.as_bytes())
            }
            Some(CallFault::Refused | CallFault::Lost | CallFault::Unanswered) | None => false,
        }
    }
}

async fn call(
    registry: &mut Channel,
    request: Request<tonic::body::Body>,
) -> Result<http::Response<tonic::body::Body>, tonic::transport::Error> {
    std::future::poll_fn(|context| GrpcService::poll_ready(registry, context)).await?;
    GrpcService::call(registry, request).await
}

fn unavailable() -> Response {
    Status::unavailable("the registry does not answer").into_http()
}

/// Records a call and answers it. A call has one request message.
async fn forward(State(proxy): State<RegistryProxy>, request: Request<Body>) -> Response {
    let (request, body) = request.into_parts();
    let method = request.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    let Ok(message) = axum::body::to_bytes(body, usize::MAX).await else { return unavailable() };
    proxy.state.send_modify(|state| {
        state.requests.entry(method.clone()).or_default().push(message.clone());
    });
    proxy.answer(&method, request, message).await
}

type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answer of the registry that waits while its method is held, and ends when it is cut.
struct GatedBody {
    proxy: RegistryProxy,
    method: String,
    answer: Pin<Box<tonic::body::Body>>,
    cut: Wait,
    /// Frame that waits for the end of a fault.
    release: Option<Wait>,
}

impl GatedBody {
    fn new(proxy: &RegistryProxy, method: &str, cuts: u64, answer: tonic::body::Body) -> Self {
        let mut state = proxy.state.subscribe();
        let cut = Box::pin(async move {
            drop(state.wait_for(|state| state.cuts > cuts).await);
        });
        Self { proxy: proxy.clone(), method: method.to_owned(), answer: Box::pin(answer), cut, release: None }
    }

    /// Waits until the method is not held.
    fn poll_released(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let (proxy, method) = (&self.proxy, &self.method);
        let release = self.release.get_or_insert_with(|| {
            let (proxy, method) = (proxy.clone(), method.clone());
            Box::pin(async move { proxy.released(&method, &[]).await })
        });
        ready!(release.as_mut().poll(context));
        self.release = None;
        Poll::Ready(())
    }
}

impl http_body::Body for GatedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Status::unavailable("the connection was cut"))));
        }
        ready!(self.poll_released(context));
        self.answer.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}
