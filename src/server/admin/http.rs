//! Connections of the admin port, and their limits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::large_answers::LargeAnswers;
use super::observer::Observer;
use super::routes::{self, Answer};

/// Connections at a time. A further one takes the place of the oldest: whoever holds connections
/// open must not keep a health check out.
pub(super) const CONNECTIONS_MAX: usize = 32;
/// A request's head must come within this time, the next one's after an answer too.
pub(super) const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// A connection ends after this time, whatever it does.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of a request's head, at most.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// After a failed accept (no descriptor left) it is tried again after this time.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// The page draws itself; nothing comes from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      connect-src 'self'; frame-ancestors 'none'";

/// Serves until the thread ends.
pub async fn listen(listener: std::net::TcpListener, observer: Rc<Observer>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!("no admin port: {error}");
            return;
        }
    };
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let large = Rc::new(LargeAnswers::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let served = connection(stream, Rc::clone(&observer), Rc::clone(&large));
        let connection = tokio::task::spawn_local(served);
        open.push_back(connection.abort_handle());
    }
}

async fn connection(stream: TcpStream, observer: Rc<Observer>, large: Rc<LargeAnswers>) {
    let end = Rc::new(Notify::new());
    let service = service_fn(|request| serve(request, &observer, (&large, &end)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(tokio::time::timeout(CONNECTION_TIME_MAX, connection));
    let mut ended = pin!(end.notified());
    let either = poll_fn(|context| {
        let is_over = served.as_mut().poll(context).is_ready();
        match is_over || ended.as_mut().poll(context).is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    either.await;
}

async fn serve(
    request: Request<Incoming>,
    observer: &Observer,
    (large, end): (&LargeAnswers, &Rc<Notify>),
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let held = if is_read && routes::is_large(request.uri()) {
        routes::prepare_large(observer).await;
        Some(large.admit(end).await)
    } else {
        None
    };
    let answer = if is_read {
        routes::answer(observer, request.uri()).await
    } else {
        Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n")
    };
    let body = match held {
        Some(held) => held.body(answer.body),
        None => Bytes::from(answer.body),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    if !is_read {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}
