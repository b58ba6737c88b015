//! Connections of the admin port, and their limits.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

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

use super::large_answers::LargeAnswers;
use super::observer::Observer;
use super::places::{Place, Places};
use super::routes::{self, Answer};

/// A request's head must come within this time, the next one's after an answer too.
pub(super) const HEAD_WAIT_MAX: Duration = Duration::from_secs(5);
/// A connection ends after this time, whatever it does.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of a request's head, at most.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// After a failed accept (no descriptor left) it is tried again after this time.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Of what was asked so many pieces are taken in for those who are not served.
const TURNED_AWAY_READS: usize = 16;
/// For whom there is no place.
const TURNED_AWAY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
                           content-length: 21\r\nretry-after: 1\r\nconnection: close\r\n\r\n\
                           too many connections\n";
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
    let places = Places::default();
    let large = Rc::new(LargeAnswers::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        let Some(place) = places.wait().await else {
            turn_away(stream);
            continue;
        };
        let (observer, large) = (Rc::clone(&observer), Rc::clone(&large));
        tokio::task::spawn_local(async move {
            if begins(&stream, &place).await {
                connection(stream, observer, (large, place)).await;
            } else {
                turn_away(stream);
            }
        });
    }
}

/// Whether something is asked before another needs the place.
async fn begins(stream: &TcpStream, place: &Place) -> bool {
    let asked = async {
        // Readiness alone may be told without a byte.
        let mut first = [0];
        let _ = tokio::time::timeout(HEAD_WAIT_MAX, stream.peek(&mut first)).await;
        true
    };
    let given_away = async {
        place.given_away().await;
        false
    };
    first(asked, given_away).await
}

/// Whoever is not served is told so, as far as that goes at once.
fn turn_away(stream: TcpStream) {
    let Ok(mut stream) = stream.into_std() else {
        return;
    };
    // What was asked is taken in: else the close resets the connection under the answer.
    let mut asked = [0; 4096];
    for _ in 0..TURNED_AWAY_READS {
        if !matches!(stream.read(&mut asked), Ok(bytes) if bytes > 0) {
            break;
        }
    }
    let _ = stream.write(TURNED_AWAY.as_bytes());
}

async fn connection(
    stream: TcpStream,
    observer: Rc<Observer>,
    (large, place): (Rc<LargeAnswers>, Rc<Place>),
) {
    let end = Rc::new(Notify::new());
    let service = service_fn(|request| {
        place.begin();
        let answered = serve(request, &observer, (&large, &end));
        let place = &place;
        async move {
            let answer = answered.await;
            place.done(Instant::now());
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let served = async {
        let _ = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
    };
    first(served, first(end.notified(), place.given_away())).await;
}

/// What is done first; of both the one.
async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Pending => other.as_mut().poll(context),
        done => done,
    })
    .await
}

async fn serve(
    request: Request<Incoming>,
    observer: &Observer,
    (large, end): (&LargeAnswers, &Rc<Notify>),
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_large = is_read && routes::is_large(request.uri());
    let held = if is_large {
        routes::prepare_large(observer).await;
        large.admit(end).await
    } else {
        None
    };
    let answer = if !is_read {
        Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n")
    } else if is_large && held.is_none() {
        let what = "others have not read theirs yet: come again\n";
        Answer::text(StatusCode::SERVICE_UNAVAILABLE, what)
    } else {
        routes::answer(observer, request.uri()).await
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
